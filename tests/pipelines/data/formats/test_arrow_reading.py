from datetime import datetime, timezone

import numpy as np
import pyarrow
import pytest

from pipelines.data.formats.arrow_reading import matches, read_numbers, read_times
from pipelines.data.formats.date_format import (
    COMPACT,
    DAY_FIRST,
    EPOCH_MILLISECONDS,
    EPOCH_SECONDS,
    ISO,
    MONTH_FIRST,
    DateFormat,
)
from pipelines.data.formats.number_format import COMMA, POINT


def utc(*parts):
    return datetime(*parts, tzinfo=timezone.utc).timestamp()


def test_numbers_of_each_format_and_which_cells_match():
    cells = pyarrow.array(["$1,234.50", "12.5%", "(3)", "abc", "7"])
    numbers = read_numbers(cells, POINT)
    assert numbers[[0, 1, 2, 4]].tolist() == [1234.5, 0.125, -3.0, 7.0]
    assert np.isnan(numbers[3])
    assert read_numbers(pyarrow.array(["0,27", "1.234,5"]), COMMA).tolist() == [0.27, 1234.5]
    assert np.isnan(read_numbers(cells, None)).tolist() == [True, True, True, True, False]
    assert matches(pyarrow.array(["ab", "b"]), "^a").tolist() == [True, False]


@pytest.mark.parametrize(
    ("date_format", "cell", "local", "offset_secs"),
    [
        (ISO, "2014-03-01", (2014, 3, 1), 0),
        (ISO, "2014/3/1 12:05", (2014, 3, 1, 12, 5), 0),
        (ISO, "2014-03-01T12:05:09.250Z", (2014, 3, 1, 12, 5, 9), 0),
        (ISO, "2014-03-01 12:05:09+05:30", (2014, 3, 1, 12, 5, 9), 19_800),
        (COMPACT, "20140301", (2014, 3, 1), 0),
        (DAY_FIRST, "31.12.1999 23:59", (1999, 12, 31, 23, 59), 0),
        (MONTH_FIRST, "12/31/1999 12:30:00 AM", (1999, 12, 31, 0, 30), 0),
        (MONTH_FIRST, "12/31/1999, 11:30 pm", (1999, 12, 31, 23, 30), 0),
        (DateFormat("day-and-name"), "Fri, 27 Nov 2026 09:04:39 +0100", (2026, 11, 27, 9, 4, 39), 3_600),
        (DateFormat("day-and-name"), "15-Mar-2015 2:30 PM", (2015, 3, 15, 14, 30), 0),
        (DateFormat("name-and-day"), "March 1st, 2015", (2015, 3, 1), 0),
        (DateFormat("month"), "2015-01", (2015, 1, 1), 0),
        (DateFormat("month-and-year"), "01/2015", (2015, 1, 1), 0),
        (DateFormat("month-name"), "Sept. 2015", (2015, 9, 1), 0),
        (DateFormat("quarter"), "Q3 2015", (2015, 7, 1), 0),
        (DateFormat("quarter"), "2015-Q4", (2015, 10, 1), 0),
        (DateFormat("quarter"), "2015Q2", (2015, 4, 1), 0),
        (DateFormat("week"), "2015W07", (2015, 2, 9), 0),
        (DateFormat("week"), "2015-W53-7", (2016, 1, 3), 0),
        (EPOCH_SECONDS, "1393675509", (2014, 3, 1, 12, 5, 9), 0),
        (EPOCH_MILLISECONDS, "1393675509250", (2014, 3, 1, 12, 5, 9), 0),
    ],
)
def test_times_of_each_format(date_format, cell, local, offset_secs):
    times = read_times(pyarrow.array([cell, "no time"]), date_format)
    assert times.is_valid.tolist() == [True, False]
    assert times.local_secs[0] == utc(*local)
    assert times.utc_secs[0] == utc(*local) - offset_secs


def test_days_that_are_not_in_the_calendar_are_no_times():
    cells = ["2015-02-29", "2016-02-29", "2015-13-01", "2015-04-31", "2015-04-30", "1900-02-29"]
    times = read_times(pyarrow.array(cells), ISO)
    assert times.is_valid.tolist() == [False, True, False, False, True, False]
