"""Damaged or odd files and records of a root: the other schedules run, and everything is shown."""

import json
import os
import shutil

import pytest
from prometheus_client import generate_latest

from pipelines.errors import BadInputError
from pipelines.root.lock import FileLock
from pipelines.scheduling.monitoring.metrics import PipelineCollector, registry
from pipelines.scheduling.monitoring.overview import look, table
from pipelines.scheduling.receivers import Receivers
from pipelines.scheduling.ticks import iso
from tests.pipelines.scheduling.conftest import START

RUN = {"status": "pushed", "finished": iso(START)}
SPAN = "span-000000000000000007"
ON_NEW_SPAN = {"every_secs": None, "on_new_span": True}


DEFINITIONS = [
    {"since": "9999-12-31T23:59:59Z"}, {"since": "0001-01-01T00:00:00+10:00"},
    {"created": "9999-12-31T23:59:59Z"}, {"created": "0001-01-01T00:00:00Z"}, {"format": [2]},
    {"config": "a\0b"}, {"working_dir": "a\0b"},
]  # fmt: skip
PENDING_TICKS = [
    "now-20260131T030000Z", "backfill-1..2-1-1", "backfill-2026-01-01..2026-01-02-1-2026-01-01", "x", "a/b",
    SPAN, "span-2026-02-31", "span-9999-99-99",
]  # fmt: skip
SPANS = [
    {"span": 7}, {"version": 1}, {"span": "x", "version": None}, {"span": 7, "version": "a"},
    {"span": None, "version": None}, {"span": "newest", "version": None},
]  # fmt: skip
PRUNED = [
    {"started": "x"}, {"started": "2026-01-01"}, {"finished": "x"}, {"spans": [{}]}, {"scheduled_by": "bad/"},
]  # fmt: skip


@pytest.fixture
def bad_file(store):
    store.folder.mkdir(parents=True)
    return store.file("bad")


@pytest.fixture
def write_definition(bad_file):
    def write(**fields):
        times = {"since": iso(START), "created": iso(START), "every_secs": 60}
        schedule = {"format": 2, "name": "bad", "working_dir": "/", **times, **fields}
        bad_file.write_text(json.dumps(schedule))

    return write


@pytest.fixture
def check(scheduler, clock, runs, root, add):
    """Returns a function that checks that a schedule runs beside the damage, and that all can be shown."""

    def check():
        add(name="good")
        clock.pass_by(61)
        scheduler.run_due()
        ticks = [runs.option(n, "--scheduled-by") for n in range(len(runs.launches))]
        assert [tick for tick in ticks if tick.startswith("good/")] == ["good/20260131T100100Z"]
        overview = look(root, clock.now())
        table(overview.standings)
        assert overview.problems() is not None
        assert [standing.as_json()["last"] for standing in overview.standings][-1]
        assert b"damaged_files" in generate_latest(registry(PipelineCollector(root, clock)))
        return overview

    return check


@pytest.mark.parametrize("fields", DEFINITIONS)
def test_a_definition_that_cannot_be(write_definition, check, fields):
    write_definition(**fields)
    assert len(check().damaged) == 1


def test_a_link_to_nowhere(bad_file, check):
    bad_file.symlink_to("nowhere")
    assert len(check().damaged) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("spans.json", '{"known": 5}'),
        ("spans.json", '{"known": [{}]}'),
        ("spans.json", '{"known": "x"}'),
        ("ticks/a.json", '{"key": "a", "state": "done", "due": "x"}'),
        ("ticks/a.json", '{"state": []}'),
        ("ticks/20260131T100500Z.json", "{"),
    ],
)
def test_state_of_format_1(write_definition, store, check, file, text):
    write_definition(format=1, **(ON_NEW_SPAN if file == "spans.json" else {}))
    former = store.state("bad") / file
    former.parent.mkdir(parents=True)
    former.write_text(text)
    assert not check().damaged
    assert not former.exists()


def test_a_pipe_in_place_of_the_ticks_of_format_1(write_definition, store, check):
    write_definition(format=1)
    store.state("bad").mkdir()
    os.mkfifo(store.state("bad") / "ticks")
    check()
    assert not (store.state("bad") / "ticks").exists()


def test_state_of_format_1_waits_until_its_schedule_can_be_read(bad_file, store, check):
    bad_file.write_text("{")
    tick = store.state("bad") / "ticks" / "a.json"
    tick.parent.mkdir(parents=True)
    tick.write_text("{}")
    check()
    assert tick.exists()


def test_a_file_in_place_of_the_state(write_definition, store, check):
    write_definition()
    store.state("bad").write_text("")
    check()


@pytest.mark.parametrize("status", ["pushed", "failed"])
@pytest.mark.parametrize("key", PENDING_TICKS)
def test_a_run_that_nobody_was_told_of(record, check, told, key, status, add):
    add(name="bad", every_secs=3600)
    run = {**RUN, "status": status, "is_bad_input": True, "notification": "pending"}
    record("20260131-095900", **run, scheduled_by=f"bad/{key}")
    check()
    assert [content["tick"] for content in told] == ([key] if status == "failed" else [])


@pytest.mark.parametrize("status", ["pushed", "interrupted"])
def test_the_run_of_a_span_whose_configuration_is_gone(record, check, tmp_path, status, add, caplog):
    add(name="bad", on_new_span=True, config=str(tmp_path / "gone.toml"))
    run = {**RUN, "status": status, "notification": "pending"}
    record("20260131-095900", **run, scheduled_by=f"bad/{SPAN}")
    assert "bad: The configuration file" in check().problems()[-1]
    assert "bad: error, retrying in 30 s" in caplog.text


@pytest.mark.parametrize("span", SPANS)
def test_a_record_with_odd_spans(record, check, span, add):
    add(name="bad", on_new_span=True)
    record("20260131-095900", **RUN, spans=(span,))
    assert len(check().damaged) == (span != {"span": 7})  # a missing version is that of no version


@pytest.mark.parametrize("fields", PRUNED)
def test_an_odd_line_of_a_pruned_run(record, check, root, fields, add):
    add(name="bad", every_secs=3600)
    record("20260101-000000", scheduled_by="bad/20260131T090000Z", **RUN)
    root.pruned.add(root.records.read_all())
    root.records.file("20260101-000000").unlink()
    file = root.path / "runs" / "pruned.jsonl"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}) + "\n")
    assert len(check().damaged) == ("scheduled_by" not in fields)  # any text may stand there


def test_an_error_that_nobody_expected_is_logged_with_its_origin(make_scheduler, runs, clock, caplog, add):
    def find(schedule, handled):
        raise RuntimeError("oops")

    add(name="bad", on_new_span=True)
    add(name="good")
    clock.pass_by(61)
    scheduler = make_scheduler(find=find)
    scheduler.run_due()
    assert (len(runs.launches), scheduler.broken) == (1, {"bad"})
    assert "bad: error, retrying in 30 s: oops" in caplog.text
    assert "Traceback" in caplog.text


def test_a_pipe_in_place_of_the_receivers(write_definition, store, check):
    write_definition()
    store.state("bad").mkdir()
    os.mkfifo(store.state("bad") / "notify.json")
    assert len(check().damaged) == 1


@pytest.mark.parametrize("make", [os.mkfifo, lambda file: file.symlink_to("nowhere")])
def test_no_regular_file_in_place_of_the_pruned_runs(root, check, make):
    root.runs.mkdir(parents=True, exist_ok=True)
    make(root.runs / "pruned.jsonl")
    assert len(check().damaged) == 1


@pytest.mark.parametrize("name", [".lock", "schedules/.change.lock", "schedules/.scheduler.lock"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda file: file.symlink_to("/dev/zero")])
def test_what_can_be_no_lock_is_named(store, root, clock, name, make):
    store.folder.mkdir(parents=True)
    make(root.path / name)
    (damage,) = look(root, clock.now()).problems()
    assert str(root.path / name) in damage
    with pytest.raises(BadInputError, match="cannot be used as a lock"):
        FileLock(root.path / name).held().__enter__()


@pytest.mark.parametrize("name", ["runs", "schedules"])
def test_a_link_to_nowhere_in_place_of_a_folder(root, clock, name):
    shutil.rmtree(root.path, ignore_errors=True)
    root.path.mkdir()
    (root.path / name).symlink_to("nowhere")
    (damage,) = look(root, clock.now()).problems()
    assert str(root.path / name) in damage


def test_damaged_receivers_are_shown_until_somebody_repairs_them(write_definition, store, check, config_file):
    write_definition(config=str(config_file))
    Receivers(settings=("notify.timeout_secs=5",)).write(store.state("bad"))
    file = store.state("bad") / "notify.json"
    text = file.read_text().removesuffix("}\n")
    file.write_text(text)
    assert len(check().damaged) == 1
    assert file.read_text() == text
