from datetime import timedelta

import pytest

from pipelines.root import Root
from pipelines.scheduling.due import find_due, handled_until, next_time
from pipelines.scheduling.known_spans import KnownSpans
from pipelines.scheduling.span_arrival import Arrival
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START


def at(minutes):
    return START + timedelta(minutes=minutes)


def due(schedule, ledger, minutes, arrivals=()):
    return find_due(schedule, ledger, at(minutes), Root(ledger.folder), lambda *_: arrivals)


def num_skipped(found):
    return sum(tick.count for tick in found.skipped)


def minutes(ticks):
    return [int(tick.due[14:16]) for tick in ticks]


def test_nothing_is_due_before_the_first_tick(make_schedule, ledger):
    found = due(make_schedule(), ledger, 0.9)
    assert (found.ticks, found.skipped, found.late, found.count) == ((), (), (), 0)
    assert next_time(make_schedule(), ledger, at(0.9)) == at(1)


@pytest.mark.parametrize("missed", ["latest", "skip", "catch-up"])
def test_one_in_time(make_schedule, ledger, missed):
    found = due(make_schedule(missed=missed), ledger, 1.4)
    assert minutes(found.ticks) == [1]
    assert (found.skipped, found.late, found.count) == ((), (), 1)


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
    assert num_skipped(found) == skipped
    assert minutes(found.late) == late
    assert found.count == 4
    if skipped:
        (one,) = found.skipped
        assert one.state == "skipped"
        assert one.due == at(skipped).isoformat()
        assert one.first == at(1).isoformat()


@pytest.mark.parametrize(
    ("missed", "num_run", "num_over"),
    [("latest", 1, 315_532_799), ("skip", 1, 315_532_799), ("catch-up", 315_532_800, 0)],
)
def test_ten_years_of_seconds(make_schedule, ledger, missed, num_run, num_over):
    schedule = make_schedule(every_secs=1, missed=missed, grace_secs=10)
    found = due(
        schedule, ledger, 3_652 * 24 * 60
    )  # two leap days; one list of them fills the memory
    assert found.count == 3_652 * 86_400 == 315_532_800
    # Those of the last 10 seconds, both ends included, are within the grace; so the last one is run.
    assert len(found.late) == 315_532_800 - 11
    assert found.late[0].due == (START + timedelta(seconds=1)).isoformat()
    assert (len(found.ticks), num_skipped(found)) == (num_run, num_over)


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


def run_spans(ledger, *numbers):
    """Has a schedule dealt with some spans; no other was there before it."""
    KnownSpans(ledger.folder).add(f"span-{number}" for number in numbers)


def spans_of(ticks):
    return " ".join(tick.spans for tick in ticks)


@pytest.mark.parametrize(
    ("missed", "run", "skipped"), [("latest", "9", "7 8"), ("catch-up", "7 8 9", "")]
)
def test_missed_spans_are_run_or_skipped(make_schedule, ledger, missed, run, skipped):
    run_spans(ledger)
    schedule = make_schedule(on_new_span=True, missed=missed)
    # 7 has been there for 20 minutes, which is more than 15.
    found = due(schedule, ledger, 30, [arrival(7, 10), arrival(8, 20), arrival(9, 29)])
    assert (spans_of(found.ticks), spans_of(found.skipped)) == (run, skipped)
    assert {tick.key for tick in found.skipped} == {f"span-{span}" for span in skipped.split()}
    assert (found.overtaken, found.count) == ((), 3)
    assert spans_of(found.late) == "7"


def test_a_span_that_is_being_written(make_schedule, ledger):
    run_spans(ledger)
    spans = [arrival(7, 29), arrival(8, 10, is_complete=False), arrival(9, 29)]
    found = due(make_schedule(on_new_span=True, missed="catch-up"), ledger, 30, spans)
    assert spans_of(found.ticks) == "7"  # none overtakes it
    assert spans_of(found.late) == "8"
    found = due(make_schedule(on_new_span=True), ledger, 30, spans)
    assert spans_of(found.ticks) == "9"
    found = due(make_schedule(on_new_span=True), ledger, 30, spans[1:2])
    assert found.ticks == []
    assert len(found.late) == 1


def test_catch_up_runs_a_span_that_arrives_after_a_later_one(make_schedule, ledger):
    run_spans(ledger, 4, 7)
    schedule = make_schedule(on_new_span=True, missed="catch-up")
    # 6 has been there for 25 minutes, 8 for 20: both should have begun.
    spans = [arrival(5, 29), arrival(6, 5), arrival(8, 10), arrival(9, 29)]
    found = due(schedule, ledger, 30, spans)
    assert spans_of(found.ticks) == "5 6 8 9"
    assert (found.skipped, found.overtaken, spans_of(found.late)) == ((), (), "6 8")
    # An old span that is never finished holds back no new one, but it is reported.
    spans[1] = arrival(6, 5, is_complete=False)
    found = due(schedule, ledger, 30, spans)
    assert (spans_of(found.ticks), spans_of(found.late)) == ("5 8 9", "6 8")


def test_the_latest_alone_says_which_span_it_leaves_out(make_schedule, ledger):
    run_spans(ledger, 4, 7)
    schedule = make_schedule(on_new_span=True)
    found = due(schedule, ledger, 30, [arrival(5, 1), arrival(8, 29), arrival(9, 29)])
    assert (spans_of(found.ticks), spans_of(found.skipped)) == ("9", "5 8")
    assert found.overtaken == found.skipped[:1]
    assert found.overtaken[0].reason == (
        "span 5 arrived after span 7, and only newer ones are run; `schedule backfill --name trips "
        "--from 5 --to 5` runs it"
    )
    assert "a later one is due" in found.skipped[1].reason
    assert found.late == []  # 5 is reported by itself
