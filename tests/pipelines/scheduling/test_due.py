from datetime import datetime, timedelta, timezone

import pytest

from pipelines.root.records import PrunedRun
from pipelines.scheduling.due import MAX_COUNTED, find_due, handled_until, next_time
from pipelines.scheduling.history import History
from pipelines.scheduling.ticks import Tick, key_of_time
from tests.pipelines.scheduling.conftest import START, at


def runs_of(*keys):
    """Returns the history of a root with a run of each tick."""
    fields = {"name": "trips", "status": "pushed", "started": START.isoformat(), "finished": None}
    return History(
        tuple(
            PrunedRun(run_id=f"run-{key}", version=None, spans=(), scheduled_by=f"trips/{key}", **fields)
            for key in keys
        )
    )


NONE = History(())


def due(schedule, minutes, history=NONE, arrivals=()):
    return find_due(schedule, history, at(minutes), lambda *_: arrivals)


def minute(tick):
    return tick and tick.due.minute


def test_the_next_time_is_that_after_now_also_of_a_schedule_that_was_created_in_the_future(make_schedule):
    assert next_time(make_schedule(), {}, at(0.9)) == at(1)
    ahead = datetime(2027, 1, 1, tzinfo=timezone.utc)
    schedule = make_schedule(since=ahead, created=ahead, every_secs=600)
    # It counts its intervals from then, also backwards.
    assert next_time(schedule, {}, at(1)) == at(10)


# At 4.9 the tick of 4 is 54 s late: more than its grace of 30 s. At 4.3 it is not.
@pytest.mark.parametrize(
    ("missed", "now", "tick", "start", "late", "count"),
    [
        ("latest", 0.9, None, None, [], 0),
        ("latest", 1.4, 1, None, [], 1),
        ("latest", 4.3, 4, None, [1, 2, 3], 4),
        ("latest", 4.9, 4, None, [1, 2, 3, 4], 4),
        ("skip", 1.4, 1, None, [], 1),
        ("skip", 4.3, 4, None, [1, 2, 3], 4),
        ("skip", 4.9, None, 4, [1, 2, 3, 4], 4),
        ("catch-up", 1.4, 1, None, [], 1),
        ("catch-up", 4.3, 1, None, [1, 2, 3], 4),
        ("catch-up", 4.9, 1, None, [1, 2, 3, 4], 4),
    ],
)
def test_a_machine_that_slept(make_schedule, missed, now, tick, start, late, count):
    found = due(make_schedule(missed=missed), now)
    assert (minute(found.tick), found.start and found.start.minute) == (tick, start)
    assert ([tick.due.minute for tick in found.late], found.count) == (late, count)


@pytest.mark.parametrize(("missed", "tick"), [("latest", -0), ("skip", -0), ("catch-up", None)])
def test_ten_years_of_seconds(make_schedule, missed, tick):
    schedule = make_schedule(every_secs=1, missed=missed, grace_secs=10)
    now = 3_652 * 24 * 60
    found = due(schedule, now)  # a list of them would fill the memory
    assert found.count == len(found.late) == MAX_COUNTED
    assert found.tick.due == (START + timedelta(seconds=1) if tick is None else at(now))


def test_a_year_of_minutes_by_cron(make_schedule):
    found = due(make_schedule(cron="* * * * *"), 366 * 24 * 60 + 0.5)
    assert found.tick.due == at(366 * 24 * 60)


def test_ticks_up_to_the_newest_run_are_done_also_with_fractions_of_seconds(make_schedule):
    schedule = make_schedule(missed="catch-up")
    history = runs_of(key_of_time(at(2)))
    assert handled_until(schedule, history.runs_by_tick("trips"), at(4.1)) == at(2)
    assert minute(due(schedule, 4.1, history).tick) == 3
    other = runs_of("backfill-1..2-1-1", "now-20260131T100300Z")
    assert minute(due(schedule, 4.1, other).tick) == 1
    schedule = make_schedule(created=START + timedelta(milliseconds=500))
    assert due(schedule, 1.5).tick.key == key_of_time(at(1))
    assert due(schedule, 1.5, runs_of(key_of_time(at(1)))).count == 0


def test_nothing_is_due_from_before_it_was_enabled_or_again_by_a_clock_set_back(make_schedule):
    history = runs_of(key_of_time(at(2)))
    schedule = make_schedule(missed="catch-up", since=at(30))
    assert minute(due(schedule, 32, history).tick) == 31
    off = schedule.model_copy(update={"enabled": False})
    assert due(off, 32, history).count == 0
    assert next_time(off, history.runs_by_tick("trips"), at(32)) is None
    schedule = make_schedule(missed="catch-up")
    history = runs_of(*(key_of_time(at(minute)) for minute in range(1, 41)))
    assert due(schedule, 20.1, history).count == 0
    found = due(schedule, 41, history)
    assert (minute(found.tick), found.count) == (41, 1)


def arrival(number, since, is_complete=True):
    return Tick("trips", span(number), at(since), str(number), is_complete)


def span(number):
    return f"span-{number:018d}"


def spans(*numbers):
    return frozenset(map(span, numbers))


# They are looked at in minute 30: what has been there since 10 is late, as it should have begun within 15.
THREE = [arrival(7, 10), arrival(8, 20), arrival(9, 29)]
BEING_WRITTEN = [arrival(7, 29), arrival(8, 10, is_complete=False), arrival(9, 29)]
BEHIND_7 = [arrival(5, 29), arrival(6, 10), arrival(8, 5), arrival(9, 29)]
BEHIND_7_UNFINISHED = [arrival(5, 29), arrival(6, 10, is_complete=False), *BEHIND_7[2:]]


@pytest.mark.parametrize(
    ("missed", "done", "arrivals", "tick", "count", "late", "passed", "overtaken"),
    [
        ("latest", [], THREE, "9", 3, ["7"], spans(7, 8), []),
        ("catch-up", [], THREE, "7", 3, ["7"], None, []),
        ("latest", [], BEING_WRITTEN, "9", 2, ["8"], spans(7), []),
        ("latest", [], BEING_WRITTEN[1:2], None, 0, ["8"], None, []),
        ("catch-up", [], BEING_WRITTEN, "7", 1, ["8"], None, []),  # none overtakes 8
        # 5 is reported by itself, and not as late.
        ("latest", [7], [arrival(5, 1), *THREE[2:]], "9", 2, [], spans(5), ["5"]),
        ("catch-up", [7], BEHIND_7, "5", 4, ["8", "6"], None, []),
        # An old span that is never finished holds back no new one, but it is reported.
        ("catch-up", [7], BEHIND_7_UNFINISHED, "5", 3, ["8", "6"], None, []),
    ],
)
def test_spans_that_have_arrived(make_schedule, missed, done, arrivals, tick, count, late, passed, overtaken):
    schedule = make_schedule(on_new_span=True, missed=missed, passed_spans=spans(4))
    found = due(schedule, 30, runs_of(*map(span, done)), arrivals)
    assert (found.tick and found.tick.spans, found.count) == (tick, count)
    assert [tick.spans for tick in found.late] == late
    assert found.passed_spans == passed
    assert [tick.spans for tick in found.overtaken] == overtaken
