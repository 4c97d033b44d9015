import io
import os
from datetime import timedelta

import pytest
from rich.console import Console

from pipelines.root import Root
from pipelines.scheduling.locks import scheduler_lock, take_run_lock
from pipelines.scheduling.memory import remember
from pipelines.scheduling.monitoring.overview import problems, standings, table
from pipelines.scheduling.notify.outbox import Outbox
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START, FakeClock


def at(minutes):
    return START + timedelta(minutes=minutes)


@pytest.fixture
def store(root, make_schedule):
    store = ScheduleStore(Root(root))
    store.write(make_schedule())
    return store


def outbox_of(root):
    return Outbox(root.schedules / "outbox", FakeClock(), lambda *_: None)


def standing(store, minutes):
    (one,) = standings(store.root, at(minutes), outbox_of(store.root))
    return one


def test_one_that_is_in_time(store, ledger):
    done = time_tick("trips", at(1)).changed(
        state="done", status="pushed", run_id="run-1", version="3", finished=at(2).isoformat()
    )
    ledger.write(done)
    one = standing(store, 1.5)
    assert (one.next_time, one.running, one.last, one.last_good) == (at(2), None, done, done)
    assert (one.num_due, one.late, one.problem) == (0, (), None)
    assert problems([one], at(1.5)) == []
    shown = one.as_json(at(1.5))
    assert shown["last"]["run_id"] == "run-1"
    assert shown["next"] == "2026-01-31T10:02:00+00:00"
    assert shown["counts"] == {"pushed": 1}


def test_one_that_is_late(store, ledger):
    ledger.write(time_tick("trips", at(1)))
    with scheduler_lock(store.folder, "a test"):
        one = standing(store, 4.9)
    assert one.running.key == one.as_json(at(4.9))["running"] == "20260131T100100Z"
    assert (one.num_due, len(one.late)) == (3, 3)
    assert one.late_secs(at(4.9)) == pytest.approx(2.9 * 60)
    assert problems([one], at(4.9)) == [
        "trips: 3 late, the oldest by 2m: it was due at 2026-01-31T10:02:00+00:00"
    ]


def test_one_that_was_stopped_while_it_ran(store, ledger):
    # Nothing else is due before the next tick, which may be in a week.
    ledger.write(time_tick("trips", at(1)))
    one = standing(store, 1.5)
    assert (one.running, one.interrupted.key, one.late) == (None, "20260131T100100Z", ())
    assert problems([one], at(1.5)) == [
        "trips: the run that was due at 2026-01-31T10:01:00+00:00 was stopped or killed, and no scheduler "
        "works here that resumes it"
    ]
    shown = one.as_json(at(1.5))
    assert (shown["running"], shown["interrupted"]) == (None, "20260131T100100Z")
    lock = take_run_lock(store.folder)  # its scheduler was killed, and it goes on
    try:
        one = standing(store, 1.5)
    finally:
        os.close(lock)
    assert (one.running.key, one.interrupted) == ("20260131T100100Z", None)
    assert problems([one], at(1.5)) == []


def test_one_that_cannot_be_seen(store, make_schedule, config_file):
    store.write(make_schedule(on_new_span=True))
    config_file.write_text("[data")
    one = standing(store, 1)
    assert "trips.toml is not valid TOML" in one.problem
    assert len(problems([one], at(1))) == 1
    store.write(make_schedule(on_new_span=True, enabled=False))
    assert problems([standing(store, 1)], at(1)) == []


def test_the_table_shows_interrupted_late_and_failing_schedules(store, ledger, make_schedule):
    remember(ledger.folder, problem="no such file")
    ledger.write(time_tick("trips", at(1)))
    store.write(make_schedule(name="off", enabled=False, cron="0 3 * * *"))
    stream = io.StringIO()
    Console(file=stream, width=140).print(
        table(standings(store.root, at(4.9), outbox_of(store.root)), at(4.9))
    )
    header, off, trips = stream.getvalue().splitlines()
    assert "next (UTC)" in header
    assert "0 3 * * * (UTC)" in off
    assert off.rstrip().endswith("disabled")
    assert trips.rstrip().endswith("INTERRUPTED, LATE: 3, PROBLEM")
    with scheduler_lock(store.folder, "a test"):
        found = standings(store.root, at(4.9), outbox_of(store.root))
    Console(file=stream, width=140).print(table(found, at(4.9)))
    assert stream.getvalue().rstrip().endswith("running, LATE: 3, PROBLEM")
