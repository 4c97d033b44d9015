import re

import pytest

from pipelines.data.formats.number_format import AMBIGUOUS, COMMA, PERCENT, POINT


def read(number_format, text):
    if not re.match(number_format.pattern, text):
        return None
    for pattern, replacement in number_format.steps:
        text = re.sub(pattern, replacement, text)
    assert re.match(number_format.plain, text)
    return float(text)


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("$33.50", 33.5, None),
        ("0,27", None, 0.27),
        ("0,270", None, 0.27),  # no thousands begin with a zero
        ("1,234", 1234.0, 1.234),
        ("1,234,567.5", 1234567.5, None),
        ("1.234.567,5", None, 1234567.5),
        ("1 234,5 €", None, 1234.5),
        ("1\u202f234,5", None, 1234.5),
        ("1'234.5", 1234.5, None),
        ("12 %", 12.0, 12.0),
        ("(5.00)", -5.0, None),
        ("-$5", -5.0, -5.0),
        ("$-5", -5.0, -5.0),
        ("\u22124.25", -4.25, None),
        ("+3", 3.0, 3.0),
        ("USD 1,200", 1200.0, 1.2),
        ("1.5e-3", 0.0015, None),
        (".5", 0.5, None),
        ("12,34", None, 12.34),
        ("1,23,456.7", None, None),
        ("5-6", None, None),
        ("$", None, None),
        ("abc", None, None),
    ],
)
def test_numbers_as_people_write_them(text, point, comma):
    assert read(POINT, text) == point
    assert read(COMMA, text) == comma
    assert bool(re.match(AMBIGUOUS, text)) == (text in ("1,234", "USD 1,200"))


def test_what_is_a_percentage():
    assert re.search(PERCENT, "12 %")
    assert not re.search(PERCENT, "12")
