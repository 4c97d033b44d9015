from datetime import timedelta

import pytest

from pipelines.scheduling.due import find_due, handled_until, next_time
from pipelines.scheduling.span_arrival import Arrival
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START


def at(minutes):
    return START + timedelta(minutes=minutes)


def due(schedule, ledger, minutes, arrivals=()):
    return find_due(schedule, ledger, at(minutes), ledger.folder, lambda *_: arrivals)


def minutes(ticks):
    return [int(tick.due[14:16]) for tick in ticks]


def test_nothing_is_due_before_the_first_tick(make_schedule, ledger):
    found = due(make_schedule(), ledger, 0.9)
    assert (found.ticks, found.skipped, found.late, found.count) == ((), None, (), 0)
    assert next_time(make_schedule(), ledger, at(0.9)) == at(1)


@pytest.mark.parametrize("missed", ["latest", "skip", "catch-up"])
def test_one_in_time(make_schedule, ledger, missed):
    found = due(make_schedule(missed=missed), ledger, 1.4)
    assert minutes(found.ticks) == [1]
    assert (found.skipped, found.late, found.count) == (None, (), 1)


# At 4.9 the tick of 4 is 54 s late: more than its grace of 30 s. At 4.3 it is not.
@pytest.mark.parametrize(
    ("missed", "now", "run", "skipped", "late"),
    [
        ("latest", 4.9, [4], 3, [1, 2, 3, 4]),
        ("latest", 4.3, [4], 3, [1, 2, 3]),
        ("skip", 4.9, [], 4, [1, 2, 3, 4]),
        ("skip", 4.3, [4], 3, [1, 2, 3]),
        ("catch-up", 4.9, [1, 2, 3, 4], 0, [1, 2, 3, 4]),
        ("catch-up", 4.3, [1, 2, 3, 4], 0, [1, 2, 3]),
    ],
)
def test_a_machine_that_slept_through_four(make_schedule, ledger, missed, now, run, skipped, late):
    found = due(make_schedule(missed=missed), ledger, now)
    assert minutes(found.ticks) == run
    assert (found.skipped.count if found.skipped else 0) == skipped
    assert minutes(found.late) == late
    assert found.count == 4
    if skipped:
        assert found.skipped.state == "skipped"
        assert found.skipped.due == at(skipped).isoformat()
        assert found.skipped.first == at(1).isoformat()


@pytest.mark.parametrize(
    ("missed", "num_run", "num_skipped"),
    [("latest", 1, 315_532_799), ("skip", 1, 315_532_799), ("catch-up", 315_532_800, 0)],
)
def test_ten_years_of_seconds(make_schedule, ledger, missed, num_run, num_skipped):
    schedule = make_schedule(every_secs=1, missed=missed, grace_secs=10)
    found = due(
        schedule, ledger, 3_652 * 24 * 60
    )  # two leap days; one list of them fills the memory
    assert found.count == 3_652 * 86_400 == 315_532_800
    # Those of the last 10 seconds, both ends included, are within the grace; so the last one is run.
    assert len(found.late) == 315_532_800 - 11
    assert found.late[0].due == (START + timedelta(seconds=1)).isoformat()
    assert (len(found.ticks), found.skipped.count if found.skipped else 0) == (num_run, num_skipped)


def test_what_is_claimed_or_skipped_is_dealt_with(make_schedule, ledger):
    schedule = make_schedule(missed="catch-up")
    ledger.write(time_tick("trips", at(2)))
    assert handled_until(schedule, ledger) == at(2)
    assert minutes(due(schedule, ledger, 4.1).ticks) == [3, 4]


def test_nothing_is_due_of_the_time_before_it_was_enabled(make_schedule, ledger):
    ledger.write(time_tick("trips", at(2)))
    schedule = make_schedule(missed="catch-up", since=at(30))
    assert minutes(due(schedule, ledger, 32).ticks) == [31, 32]
    off = schedule.model_copy(update={"enabled": False})
    assert due(off, ledger, 32).count == 0
    assert next_time(off, ledger, at(32)) is None


def test_a_clock_that_is_set_back_makes_nothing_due_again(make_schedule, ledger):
    schedule = make_schedule(missed="catch-up")
    ledger.write(time_tick("trips", at(40)))
    assert due(schedule, ledger, 20).count == 0
    assert minutes(due(schedule, ledger, 41).ticks) == [41]


def arrival(number, since, is_complete=True):
    return Arrival(f"span-{number}", str(number), at(since), is_complete)


@pytest.mark.parametrize(
    ("missed", "run", "skipped"), [("latest", "9", 2), ("catch-up", "7 8 9", 0)]
)
def test_spans(make_schedule, ledger, missed, run, skipped):
    schedule = make_schedule(on_new_span=True, missed=missed)
    # 7 has been there for 20 minutes, which is more than 15.
    found = due(schedule, ledger, 30, [arrival(7, 10), arrival(8, 20), arrival(9, 29)])
    assert " ".join(tick.spans for tick in found.ticks) == run
    assert (found.skipped.count if found.skipped else 0) == skipped
    assert [tick.spans for tick in found.late] == ["7"]


def test_a_span_that_is_being_written(make_schedule, ledger):
    spans = [arrival(7, 29), arrival(8, 10, is_complete=False), arrival(9, 29)]
    found = due(make_schedule(on_new_span=True, missed="catch-up"), ledger, 30, spans)
    assert [tick.spans for tick in found.ticks] == ["7"]  # none overtakes it
    assert [tick.spans for tick in found.late] == ["8"]
    found = due(make_schedule(on_new_span=True), ledger, 30, spans)
    assert [tick.spans for tick in found.ticks] == ["9"]
    found = due(make_schedule(on_new_span=True), ledger, 30, spans[1:2])
    assert found.ticks == ()
    assert len(found.late) == 1
