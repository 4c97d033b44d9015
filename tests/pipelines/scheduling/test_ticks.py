from datetime import datetime, timedelta, timezone

import pytest

from pipelines.scheduling.ticks import is_span_key, iso, key_of_time, time_of_key, time_tick

BERLIN = timezone(timedelta(hours=1))


def test_the_key_of_a_time_is_utc_and_fractions_of_seconds_are_cut_off():
    due = datetime(2026, 1, 31, 3, 0, tzinfo=BERLIN)
    assert key_of_time(due) == "20260131T020000Z"
    assert time_of_key("20260131T020000Z") == due
    assert time_tick("nightly", due).id == "nightly/20260131T020000Z"
    assert iso(datetime(2026, 1, 31, 1, 2, 3, 999_999, timezone.utc)) == "2026-01-31T01:02:03+00:00"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("span-000000000000000007", True),
        ("span-000000000000000007-v000000000000000002", True),
        ("span-2026-01-31", True),
        ("span-7", False),
        ("span-2026-01-31/../x", False),
        ("span-2026-02-31", False),
        ("backfill-7..8-1-7", False),
        ("20260131T020000Z", False),
    ],
)
def test_the_key_of_a_span(key, expected):
    assert is_span_key(key) == expected
    assert (time_of_key(key) is None) == (key[0] != "2")
