import io

import pytest
from rich.console import Console

from pipelines.scheduling.due import Due
from pipelines.scheduling.monitoring.overview import look, table
from pipelines.scheduling.store import scheduler_lock
from pipelines.scheduling.ticks import iso, time_tick
from tests.pipelines.scheduling.conftest import at

TICK = time_tick("trips", at(1))


@pytest.fixture(autouse=True)
def schedule(add):
    add()


@pytest.fixture
def standing(root):
    """Returns a function that returns the overview at a minute, and the state of its only schedule."""

    def look_at(minutes):
        overview = look(root, at(minutes))
        (only,) = overview.standings
        return overview, only

    return look_at


def test_one_that_is_in_time(record, standing):
    times = {"started": iso(at(1)), "finished": iso(at(1.2))}
    record("run-1", status="pushed", version="3", scheduled_by=TICK.id, **times)
    overview, trips = standing(1.5)
    assert (trips.next_time, trips.running) == (at(2), None)
    assert trips.last.run_id == trips.last_good.run_id == "run-1"
    assert (trips.due.count, trips.due.late, trips.problem) == (0, (), None)
    assert (overview.problems(), overview.remarks()) == ([], [])
    shown = trips.as_json()
    assert (shown["last"]["run_id"], shown["last"]["tick"]) == ("run-1", TICK.key)
    assert shown["next"] == "2026-01-31T10:02:00+00:00"
    assert shown["counts"] == {"pushed": 1}


def test_one_that_is_late(standing, record, store):
    record("run-1", status="running", scheduled_by=TICK.id)
    with scheduler_lock(store.folder):
        overview, trips = standing(4.9)
    assert trips.running == trips.as_json()["running"] == "20260131T100100Z"
    assert (trips.due.count, len(trips.due.late)) == (3, 3)
    assert trips.late_secs == pytest.approx(2.9 * 60)
    assert overview.problems() == ["trips: 3 late, the oldest by 2m: it was due at 2026-01-31T10:02:00+00:00"]


def test_one_that_was_stopped_while_it_ran(standing, record, root):
    # Nothing else is due before the next tick, which may be in a week.
    record("run-1", status="running", scheduled_by=TICK.id)
    overview, trips = standing(1.5)
    assert (trips.running, trips.interrupted, trips.due.late) == (None, TICK.key, ())
    assert overview.problems() == [
        f"trips: the run of {TICK.key} was stopped or killed, and no scheduler is running that could "
        "resume it"
    ]
    with root.lock.writing.held():  # its scheduler was killed, and it goes on
        overview, trips = standing(1.5)
    assert (trips.running, trips.interrupted, overview.problems()) == (TICK.key, None, [])


def test_one_whose_data_cannot_be_searched(config_file, standing, add):
    add(on_new_span=True)
    config_file.write_text("[data")
    overview, trips = standing(1)
    assert "trips.toml is not valid TOML" in trips.problem
    assert len(overview.problems()) == 1
    add(on_new_span=True, enabled=False)
    assert standing(1)[0].problems() == []


def test_an_error_of_one_schedule_hides_no_other(monkeypatch, root, add):
    def find_due(schedule, *_):
        if schedule.name == "bad":
            raise RuntimeError
        return Due()

    add(name="bad")
    monkeypatch.setattr("pipelines.scheduling.monitoring.overview.find_due", find_due)
    problems = {standing.schedule.name: standing.problem for standing in look(root, at(1)).standings}
    assert problems == {"bad": "RuntimeError()", "trips": None}


def test_damaged_strange_files_and_future_times_are_reported(standing, record, store, root, make_schedule):
    store.file("other").write_text("{")
    (store.folder / "trips (copy).json").write_text("{}")
    record("run-1", status="pushed", started=iso(at(60)), scheduled_by=time_tick("trips", at(60)).id)
    root.records.file("run-2").write_text("[]")
    store.state("trips").mkdir()
    (store.state("trips") / "notify.json").write_text("{")
    store.change("trips", since=at(90))
    overview, trips = standing(1.5)
    assert trips.next_time == at(1)  # it is due
    problems, remarks = overview.problems(), overview.remarks()
    assert ["other.json cannot" in problems[0], "run-2.json is no" in problems[1]] == [True, True]
    assert "trips (copy).json is not the file of a schedule" in remarks[0]
    assert [line.partition(": the clock")[0] for line in remarks[1:]] == [
        "the run run-1 began at 2026-01-31T11:00:00+00:00",
        "the run run-1 is that of trips/20260131T110000Z",
        "the schedule 'trips' begins at 2026-01-31T11:30:00+00:00",
    ]
    assert "notify.json cannot be read" in problems[2]
    assert (len(problems), len(remarks), len(overview.future)) == (3, 4, 3)


def test_a_notification_that_failed_is_reported_until_the_next_run(standing, record):
    run = {"status": "failed", "is_bad_input": True, "scheduled_by": TICK.id}
    record("run-1", **run, notification="no mail")
    overview, trips = standing(1.5)
    assert trips.not_told == "no mail"
    assert overview.remarks() == ["trips: the notification of the last run failed: no mail"]
    for notification in ("pending", ""):
        record("run-2", **run, notification=notification)
        assert standing(1.5)[0].remarks() == []


def test_the_table_shows_interrupted_late_and_failing_schedules(root, record, config_file, add):
    record("run-1", status="running", scheduled_by=TICK.id)
    add(name="off", enabled=False, cron="0 3 * * *")
    add(name="spans", on_new_span=True)
    config_file.write_text("[data")
    stream = io.StringIO()
    Console(file=stream, width=140).print(table(look(root, at(4.9)).standings))
    header, off, spans, trips = stream.getvalue().splitlines()
    assert "next (UTC)" in header
    assert "0 3 * * * (UTC)" in off
    assert off.rstrip().endswith("disabled")
    assert spans.rstrip().endswith("PROBLEM")
    assert trips.rstrip().endswith("INTERRUPTED, LATE: 3")
