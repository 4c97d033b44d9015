"""A root of the release before this format: the files are as that release wrote them."""

from datetime import datetime, timedelta, timezone

import pytest

from pipelines.atomic_files import write_json
from pipelines.scheduling.due import find_due
from pipelines.scheduling.history import History
from tests.pipelines.scheduling.conftest import START


@pytest.fixture
def write_former(store, make_schedule):
    """Returns a function that writes a schedule of format 1 and its ticks: key, due minute and state."""

    def write(ticks, known=None, **fields):
        schedule = make_schedule(**fields)
        former = schedule.model_dump(mode="json", exclude_defaults=True)
        write_json(store.file("trips"), {"format": 1, **former})
        folder = store.state("trips")
        for key, minute, state in ticks:
            due = (START + timedelta(minutes=minute)).isoformat()
            tick = {"schedule": "trips", "key": key, "due": due, "state": state}
            write_json(folder / "ticks" / f"{key}.json", tick)
        if known is not None:
            write_json(folder / "spans.json", {"known": known})
        write_json(folder / "state.json", {"told_missed": "", "problem": None})
        write_json(folder / "notify.json", {"notify": {"command": "tell"}, "settings": []}, private=True)
        return schedule

    return write


def test_ticks_that_were_done_are_not_due(write_former, store, scheduler, clock, runs):
    ticks = [("20260131T100500Z", 5, "done"), ("20260131T100600Z", 6, "skipped")]
    write_former([*ticks, ("20260131T100700Z", 7, "claimed")], missed="catch-up")
    clock.pass_by(8 * 60)
    before = store.read("trips")
    scheduler.run_due()
    assert runs.ticks() == ["20260131T100700Z", "20260131T100800Z"]
    assert store.read("trips") == before
    folder = store.state("trips")
    assert sorted(path.name for path in folder.iterdir()) == ["notify.json", "stdout"]


@pytest.mark.parametrize(
    ("key", "fields"),
    [("20260131T100500Z", {}), ("span-000000000000000009-v000000000000000001", {"on_new_span": True})],
)
def test_a_run_that_was_given_up_is_not_resumed(write_former, scheduler, clock, runs, record, key, fields):
    write_former([(key, 5, "done")], known=[], **fields)
    record("20260131-100500", status="interrupted", scheduled_by=f"trips/{key}")
    clock.pass_by(5 * 60 + 10)
    scheduler.run_due()
    assert key not in runs.ticks()


def test_spans_that_were_known_are_not_new(write_former, store):
    key = "span-{:018d}-v000000000000000001".format
    write_former([(key(9), 5, "done")], known=[key(8)], on_new_span=True, missed="catch-up")
    due = find_due(store.read("trips"), History(()), START)
    assert (due.tick.spans, due.count, due.passed_spans) == ("10", 1, None)


def test_a_tick_of_a_clock_that_was_ahead_silences_nothing(write_former, store):
    write_former([("20270131T100500Z", 365 * 24 * 60, "done")])
    now = datetime(2026, 1, 31, 10, 30, tzinfo=timezone.utc)
    assert find_due(store.read("trips"), History(()), now).tick.due == now


def test_a_folder_of_the_name_of_former_state_does_not_matter(write_former, store):
    write_former([])
    (store.state("trips") / "totals.json").mkdir()
    store.migrate()
    assert store.read("trips").name == "trips"
