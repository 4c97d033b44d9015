import pytest

from pipelines.data.date_kinds import AmbiguousDatesError, find_date_formats, measure, recognise_dates
from pipelines.data.formats.date_format import DAY_FIRST, ISO, MONTH_FIRST
from tests.pipelines.data.tables import column_of


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("a", ["2014-03-01", "2015-12-31 10:00"], "iso"),
        ("a", ["13/01/2014", "01/02/2014"], "day-first"),
        ("a", ["01/13/2014", "01/02/2014"], "month-first"),
        ("a", ["01.02.2014", "03.04.2014"], "day-first"),
        ("a", ["13/01/2014", "01/13/2014"], None),  # no format fits both
        ("a", ["2014-03-01", "soon"], None),
        ("ordered", ["20140301", "20141231"], None),
        ("orderDate", ["20140301", "20141231"], "compact"),
        ("order_date", ["20140301", "20141331"], None),  # no month 13
        ("created_at", ["1400000000", "1500000000"], "epoch-seconds"),
        ("timestamp", ["1400000000123", "1500000000456"], "epoch-milliseconds"),
        ("population", ["1400000000", "1500000000"], None),
        ("time", ["14", "15"], None),
    ],
)
def test_all_cells_decide_on_the_format(tmp_path, name, cells, expected):
    found = recognise_dates(*column_of(tmp_path, name, cells), None)
    assert (found and found.date_format.name) == expected


def test_dates_that_may_be_either_or_contradict_each_other_are_asked_for(tmp_path):
    column, cells = column_of(tmp_path, "a", ["01/02/2014", "03/04/2014"])
    with pytest.raises(AmbiguousDatesError):
        recognise_dates(column, cells, None)
    assert recognise_dates(column, cells, "day-first").date_format == DAY_FIRST
    assert recognise_dates(column, cells, "month-first").date_format == MONTH_FIRST
    either = ["01/02/2014", "03/04/2014"] * 50
    mixed = [*either, "13/05/2014", "05/14/2014", "05/15/2014"]
    column, cells = column_of(tmp_path, "a", mixed)
    with pytest.raises(AmbiguousDatesError):
        recognise_dates(column, cells, None)
    for order, num_misses in (("day-first", 2), ("month-first", 1)):
        found = recognise_dates(column, cells, order)
        assert (found.date_format.name, found.days.num_unreadable) == (order, num_misses)
    # Ten to one, and what is no date at all, are mistakes.
    for odd in ("05/14/2014", "soon"):
        many = [*either, *["13/05/2014"] * 10, odd]
        found = recognise_dates(*column_of(tmp_path, "a", many), None)
        assert (found.date_format.name, found.days.num_unreadable) == ("day-first", 1)


@pytest.mark.parametrize("mark", ["-", "/"])
def test_seasons_are_no_months(tmp_path, mark):
    seasons = [f"{year}{mark}{year - 1999:02d}" for year in range(2000, 2012)]
    assert recognise_dates(*column_of(tmp_path, "a", seasons), None) is None
    months = [*seasons, f"2001{mark}03"]
    assert recognise_dates(*column_of(tmp_path, "a", months), None).date_format.name == "month"
    given = recognise_dates(*column_of(tmp_path, "a", seasons), None, is_given=True)
    assert given.date_format.name == "month"


def test_numbers_need_no_name_where_the_user_says_that_they_are_dates(tmp_path):
    column, cells = column_of(tmp_path, "a", ["1400000000", "1500000000"])
    assert find_date_formats(column, cells, None) == ()
    assert find_date_formats(column, cells, None, is_given=True)[0].name == "epoch-seconds"


def test_what_the_dates_are_like(tmp_path):
    dates = measure(column_of(tmp_path, "a", ["1970-01-02", "1970-01-04", "NA"])[1], ISO)
    assert (dates.days.mean, dates.days.minimum, dates.days.maximum) == (2, 1, 3)
    assert not dates.has_time
    dates = measure(column_of(tmp_path, "a", ["1970-01-02 06:00", "1970-01-02"])[1], ISO)
    assert (dates.days.mean, dates.has_time) == (1.125, True)
    # Half of them are not in the calendar.
    assert measure(column_of(tmp_path, "a", ["2015-02-30", "2015-02-28"])[1], ISO) is None
    one = [*["2015-02-28"] * 150, "2015-02-30"]
    assert measure(column_of(tmp_path, "a", one)[1], ISO).days.num_unreadable == 1
