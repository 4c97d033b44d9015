import re

import pytest

from pipelines.data.formats.number_format import (
    AMBIGUOUS,
    COMMA,
    PLAIN,
    POINT,
    NumberFormat,
    pattern_and_terms,
)


def read(number_format, cell):
    pattern, terms = pattern_and_terms(number_format)
    if not re.match(pattern, cell):
        return None
    total = 0.0
    for steps, factor in terms:
        text = cell
        for wanted, replacement in steps:
            text = re.sub(wanted, replacement, text)
        assert re.match(PLAIN, text)
        total += factor * float(text)
    return total


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
        ("12 %", 0.12, 0.12),
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
        ("--5", None, None),
        ("-$-5", None, None),
        ("+-5", None, None),
        ("$", None, None),
        ("abc", None, None),
    ],
)
def test_numbers_as_people_write_them(text, point, comma):
    assert read(POINT, text) == point
    assert read(COMMA, text) == comma
    assert bool(re.match(AMBIGUOUS, text)) == (text in ("1,234", "USD 1,200"))


MULTIPLES = NumberFormat(scale="multiples")
EUROS = NumberFormat(currency="EUR", scale="multiples")
KILOGRAMS = NumberFormat(unit="kg")
TIME, LENGTH, MASS = (NumberFormat(scale=scale) for scale in ("time", "length", "mass"))


@pytest.mark.parametrize(
    ("number_format", "text", "expected"),
    [
        (MULTIPLES, "2.3M", 2_300_000.0),  # 2.3 * 1e6 is 2299999.9999999995
        (MULTIPLES, "1.2K", 1_200.0),
        (MULTIPLES, "3 bn", 3e9),
        (MULTIPLES, "($1.5 million)", -1_500_000.0),
        (MULTIPLES, "1.2 Mrd. €", 1.2e9),
        (MULTIPLES, "3 crore", 30_000_000.0),
        (MULTIPLES, "500k USD", 500_000.0),
        (MULTIPLES, "7", 7.0),
        (MULTIPLES, "12.5%", 0.125),
        (MULTIPLES, "5 kg", None),
        (NumberFormat(",", scale="multiples"), "1.234,5 Mio.", 1_234_500_000.0),
        (EUROS, "€95.5M", 95_500_000.0),
        (EUROS, "95 EUR", 95.0),
        (EUROS, "€0", 0.0),
        (EUROS, "$5M", None),
        (KILOGRAMS, "1,200.5 KG", 1_200.5),
        (KILOGRAMS, "-3kg", -3.0),
        (KILOGRAMS, "5 kilos", 5.0),
        (KILOGRAMS, "0", 0.0),
        (KILOGRAMS, "5", None),
        (KILOGRAMS, "5 lb", None),
        (MULTIPLES, "5 mil", None),  # a thousand in Portuguese and Spanish
        (NumberFormat(unit="B"), "5 bytes", 5.0),
        (NumberFormat(unit="ft"), "5 feet", 5.0),
        (NumberFormat(unit="stars"), "1 star", 1.0),
        (NumberFormat(unit="sq ft"), "1,200 sq ft", 1_200.0),
        (NumberFormat(currency="USD", unit="per month"), "$5 per month", 5.0),
        (LENGTH, "5'11\"", 5 * 0.3048 + 11 * 0.0254),
        (LENGTH, "5'11", 5 * 0.3048 + 11 * 0.0254),
        (LENGTH, "5 ft, 11 in", 5 * 0.3048 + 11 * 0.0254),
        (LENGTH, "6\u2019", 6 * 0.3048),
        (LENGTH, "170 cm", 1.7),
        (LENGTH, "11\" 5'", None),
        (LENGTH, "1 m 70", None),
        (MASS, "159lbs", 159 * 0.45359237),
        (MASS, "72 kg", 72.0),
        (TIME, "2h 5m", 7_500.0),
        (TIME, "-1h", -3_600.0),
        (TIME, "1.5 hours", 5_400.0),
        (TIME, "3 days, 4 hours", 3 * 86_400.0 + 4 * 3_600),
        (TIME, "5m 2h", None),
        (TIME, "", None),
        (TIME, "90", None),
        (NumberFormat(scale="calendar"), "1 year 6 months", 18.0),
        (NumberFormat(clock="h:mm"), "01:23:45", 5_025.0),
        (NumberFormat(clock="h:mm"), "12:34", 45_240.0),
        (NumberFormat(clock="h:mm"), "-0:10", -600.0),
        (NumberFormat(clock="h:mm"), "1 days 01:23:45.5", 91_425.5),
        (NumberFormat(clock="h:mm"), "1:60", None),
        (NumberFormat(clock="m:ss"), "45:30", 2_730.0),
        (NumberFormat(clock="m:ss"), "1:02:03", 3_723.0),
        (None, "-1.5e3", -1_500.0),
        (None, "1,5", None),
    ],
)
def test_multiples_units_and_durations(number_format, text, expected):
    assert read(number_format, text) == expected


def test_formats_say_what_they_convert():
    assert LENGTH.describe() == "units that are converted into metres"
    assert KILOGRAMS.describe() == "in kg"
    assert NumberFormat(clock="m:ss").describe() == "durations or times of day (m:ss), in seconds"
    assert POINT.describe() == EUROS.describe() == ""
