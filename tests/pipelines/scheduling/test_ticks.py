from datetime import datetime, timedelta, timezone

from pipelines.scheduling.ticks import iso, key_of_time, time_tick

BERLIN = timezone(timedelta(hours=1))


def test_the_key_of_a_time_is_utc():
    due = datetime(2026, 1, 31, 3, 0, tzinfo=BERLIN)
    assert key_of_time(due) == "20260131T020000Z"
    tick = time_tick("nightly", due)
    assert tick.id == "nightly/20260131T020000Z"
    assert tick.due == "2026-01-31T02:00:00+00:00"
    assert tick.due_time == due


def test_how_long_it_took():
    tick = time_tick("nightly", datetime(2026, 1, 31, tzinfo=timezone.utc))
    assert tick.duration_secs is None
    times = {"started": "2026-01-31T00:00:05+00:00", "finished": "2026-01-31T00:02:05+00:00"}
    assert tick.changed(**times).duration_secs == 120


def test_seconds_are_cut_off():
    assert iso(datetime(2026, 1, 31, 1, 2, 3, 999_999, timezone.utc)) == "2026-01-31T01:02:03+00:00"
