import datetime

import pytest

from pipelines.config.span_selection import (
    NEWEST,
    SpanSelection,
    find_holes,
    format_spans,
    next_key,
    parse_selection,
)


def day(number, month=1):
    return datetime.date(2026, month, number)


@pytest.mark.parametrize(
    ("given", "selection", "written"),
    [
        ("newest", NEWEST, "newest"),
        (" last  5 ", SpanSelection(newest=5), "last 5"),
        ("last 1", NEWEST, "newest"),
        ("last 5  to 7", SpanSelection(newest=5, last=7), "last 5 to 7"),
        ("last 1 to 2026-01-31", SpanSelection(newest=1, last=day(31)), "last 1 to 2026-01-31"),
        ("7", SpanSelection(None, 7, 7), "7"),
        (7, SpanSelection(None, 7, 7), "7"),
        ("3-7", SpanSelection(None, 3, 7), "3..7"),
        ("3 .. 10", SpanSelection(None, 3, 10), "3..10"),
        ("2026-01-31", SpanSelection(None, day(31), day(31)), "2026-01-31"),
        (day(31), SpanSelection(None, day(31), day(31)), "2026-01-31"),
        ("2026-01-30..2026-02-02", SpanSelection(None, day(30), day(2, 2)), "2026-01-30..2026-02-02"),
    ],
)  # fmt: skip
def test_what_can_be_asked_for(given, selection, written):
    assert parse_selection(given) == selection
    assert str(selection) == written
    assert parse_selection(written) == selection


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("oldest", "the forms are \"newest\", \"last 5\", one span"),
        ("last five", "the forms are"),
        ("", "the forms are"),
        ("-3", "the forms are"),
        (3.5, "the forms are"),
        (True, "the forms are"),
        ("٣", "the forms are"),  # a digit, but not of ASCII
        ("2026-01-01-2026-01-31", "the forms are"),
        ("last 0", "at least one span"),
        ("7-3", r'runs backwards: write "3\.\.7"'),
        ("10..9", r'write "9\.\.10"'),
        ("2026-02-01..2026-01-01", r'write "2026-01-01\.\.2026-02-01"'),
        ("2026-02-30", "2026-02-30 is not a date: day"),
        ("3..2026-01-01", "of two numbers, or of two dates"),
    ],
)  # fmt: skip
def test_a_selection_that_cannot_be_read_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        parse_selection(given)


def test_spans_as_text():
    assert format_spans([]) == ""
    assert format_spans([8]) == "8"
    assert format_spans([1, 2, 3, 8, 10, 11]) == "1..3, 8, 10..11"
    days = [day(30), day(31), day(1, 2), day(3, 2)]
    assert format_spans(days) == "2026-01-30..2026-02-01, 2026-02-03"
    assert (next_key(9), next_key(day(31))) == (10, day(1, 2))


@pytest.mark.parametrize(
    ("first", "last", "present", "holes"),
    [
        (3, 7, [3, 4, 5, 6, 7], ""),
        (3, 7, [], "3..7"),
        (3, 7, [3, 4], "5..7"),
        (3, 7, [6, 7], "3..5"),
        (3, 7, [4, 6], "3, 5, 7"),
        (3, 7, [3, 7], "4..6"),
        (0, 10**18, [5], f"0..4, 6..{10**18}"),
        (day(30), day(3, 2), [day(30), day(2, 2)], "2026-01-31..2026-02-01, 2026-02-03"),
        (datetime.date.max, datetime.date.max, [datetime.date.max], ""),  # no day follows it
    ],
)
def test_holes_of_a_range(first, last, present, holes):
    assert find_holes(first, last, present) == holes
