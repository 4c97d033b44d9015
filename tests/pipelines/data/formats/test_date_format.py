import datetime
import re

import numpy as np

from pipelines.data.formats.date_format import (
    DAY_FIRST,
    EPOCH_MILLISECONDS,
    ISO,
    TEXT_FORMATS,
    days_since_1970,
    epoch_seconds,
    month_number,
    weekday_number,
)


def test_the_calendar_is_pythons():
    days = np.arange(-150_000, 90_000, 7)  # 1559 to 2216, leap days of 1600, 1900 and 2000 in it
    days = np.concatenate([days, [-25_567 + 59, 11_016, 11_017]])
    first = datetime.date(1970, 1, 1)
    dates = [first + datetime.timedelta(days=int(number)) for number in days]
    parts = (np.array([getattr(date, part) for date in dates]) for part in ("year", "month", "day"))
    assert (days_since_1970(*parts) == days).all()
    assert (month_number(days) == [date.month for date in dates]).all()
    assert (weekday_number(days) == [date.weekday() for date in dates]).all()


def test_seconds_take_halves_of_the_day_and_offsets_into_account():
    parts = {
        "year": [1970] * 4, "month": [1] * 4, "day": [2] * 4,
        "hour": [12, 12, 3, 23], "minute": [5] * 4, "second": [7] * 4, "half": [1, 2, 2, 0],
        "sign": [0, 0, 1, -1], "offset_hour": [0, 0, 2, 5], "offset_minute": [0, 0, 0, 30],
    }  # fmt: skip
    local, utc, is_known = epoch_seconds({name: np.array(values) for name, values in parts.items()})
    # 12 at night, 12 at noon, 3 in the afternoon, 23; each 5 minutes and 7 seconds later.
    assert (local - 86_400 - 307).tolist() == [0, 12 * 3_600, 15 * 3_600, 23 * 3_600]
    assert (local - utc).tolist() == [0, 0, 7_200, -19_800]
    assert is_known.tolist() == [True] * 4


def test_formats_say_how_they_are_read():
    assert ISO.unit_secs is None
    assert EPOCH_MILLISECONDS.unit_secs == 0.001
    assert DAY_FIRST.parts["day"][0] == (DAY_FIRST.pattern, r"\1")
    assert DAY_FIRST.parts["year"][0][1] == r"\3"
    assert ISO.parts["hour"][0][1] == DAY_FIRST.parts["hour"][0][1] == r"\4"
    for date_format in TEXT_FORMATS:  # RE2 refers to nine groups
        assert re.compile(date_format.pattern).groups <= 9
    assert [one.name for one in TEXT_FORMATS if not one.has_days] == [
        "month", "month-and-year", "month-name", "quarter", "week",
    ]  # fmt: skip


def test_weeks_are_those_of_the_standard():
    days = [(year, week, day) for year in range(1990, 2030) for week in (1, 7, 52, 53) for day in (1, 4, 7)]
    parts = dict(zip(("year", "week", "weekday"), np.array(days).T, strict=True))
    local, utc, is_known = epoch_seconds(parts)
    for day, secs, known in zip(days, local // 86_400, is_known, strict=True):
        try:
            expected = datetime.date.fromisocalendar(*day)
        except ValueError:  # the year has 52 weeks
            assert not known
            continue
        assert known
        assert datetime.date(1970, 1, 1) + datetime.timedelta(int(secs)) == expected
    assert 0 < (~is_known).sum() < len(days) / 4
    assert (local == utc).all()
