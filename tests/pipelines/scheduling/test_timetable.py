"""Expected times are read off a calendar: clocks in Berlin changed on 29 March and 25 October 2026."""

from datetime import datetime, timedelta, timezone

import pytest

from pipelines.scheduling.timetable import Cron, Every

BERLIN = "Europe/Berlin"


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def times(table, after, until):
    found, time = [], table.after(utc(after))
    while time <= utc(until):
        found.append(f"{time:%m-%d %H:%M}")
        # The last one is found from any later moment.
        assert table.until(time) == table.until(table.after(time) - timedelta(seconds=1)) == time
        time = table.after(time)
    return found


def test_a_time_of_day_a_leap_day_and_every_hour_by_elapsed_time():
    table = Cron("30 3 * * 1-5")
    # 30 January 2026 is a Friday.
    assert table.after(utc("2026-01-30 03:29:59")) == utc("2026-01-30 03:30")
    assert table.after(utc("2026-01-30 03:30")) == utc("2026-02-02 03:30")
    table = Cron("0 3 29 2 *")
    assert table.after(utc("2026-01-30 00:00")) == utc("2028-02-29 03:00")
    assert table.until(utc("2028-02-29 02:59")) == utc("2024-02-29 03:00")
    table = Cron("0 * * * *", BERLIN)
    assert len(times(table, "2026-10-24 22:00", "2026-10-25 23:00")) == 25


@pytest.mark.parametrize(
    ("expression", "zone", "after", "until", "expected"),
    [
        # The end of a stretch is in it, and its beginning is not.
        ("*/15 * * * *", "UTC", "01-30 00:15", "01-30 01:00", ["30 00:30", "30 00:45", "30 01:00"]),
        # 3 o'clock is 2 o'clock UTC in winter, 1 o'clock in summer.
        ("0 3 * * *", BERLIN, "03-27 12:00", "03-30 12:00", ["28 02:00", "29 01:00", "30 01:00"]),
        # On 29 March the clocks went from 2:00 to 3:00, at 1:00 UTC: what is left out comes right after.
        ("30 2 * * *", BERLIN, "03-27 12:00", "03-30 12:00", ["28 01:30", "29 01:00", "30 00:30"]),
        # On 25 October they went from 3:00 back to 2:00: 2:30 is at 0:30 and 1:30 UTC, and counts once.
        ("30 2 * * *", BERLIN, "10-24 12:00", "10-26 12:00", ["25 00:30", "26 01:30"]),
    ],
)
def test_a_zone_follows_its_clocks(expression, zone, after, until, expected):
    found = times(Cron(expression, zone), f"2026-{after}", f"2026-{until}")
    assert found == [f"{after[:2]}-{time}" for time in expected]


def test_a_time_that_comes_twice_counts_once_whenever_it_is_asked():
    table = Cron("30 2 * * *", BERLIN)
    after = utc("2026-10-25 00:00")
    while after < utc("2026-10-25 03:00"):
        following = table.after(after)
        assert following > after
        assert f"{following:%m-%d %H:%M}" in ("10-25 00:30", "10-26 01:30")
        after += timedelta(minutes=5)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("0 0 3 * * *", "five fields.*seconds, which only Kubeflow"),
        ("0 3 * *", "five fields"),
        ("61 3 * * *", "bad minute"),
        ("0 3 30 2 *", "bad day-of-month"),
        ("0 3 * * funday", "bad day-of-week"),
    ],
)
def test_an_expression_that_is_none(expression, message):
    with pytest.raises(ValueError, match=message):
        Cron(expression)


def test_intervals_are_counted_from_their_start():
    table = Every(utc("2026-01-30 10:00:20"), 3_600)
    assert table.after(utc("2026-01-30 10:00:20")) == utc("2026-01-30 11:00:20")
    assert table.after(utc("2026-01-30 11:00:19")) == utc("2026-01-30 11:00:20")
    assert table.after(utc("2026-01-30 11:00:20")) == utc("2026-01-30 12:00:20")
    assert table.until(utc("2026-01-30 12:00:19")) == utc("2026-01-30 11:00:20")
    assert table.until(utc("2026-01-30 12:00:20")) == utc("2026-01-30 12:00:20")
    # Before the start, too: a clock that was ahead may have set it.
    assert table.after(utc("2026-01-29 00:00")) == utc("2026-01-29 00:00:20")
