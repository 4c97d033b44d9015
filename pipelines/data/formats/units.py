"""Currencies, multipliers and units of numbers in text cells."""

import re
from dataclasses import dataclass
from typing import Literal

Scale = Literal["multiples", "time", "calendar", "length", "mass", "volume", "bytes", "hertz", "watts"]
"""Units that convert into each other."""

CURRENCIES = {
    "AUD": "A[$]|AU[$]|AUD", "BRL": "R[$]|BRL", "CAD": "C[$]|CA[$]|CAD", "CHF": r"CHF|Fr\.",
    "CNY": "CNY", "CZK": "CZK", "DKK": "DKK", "EUR": "€|EUR", "GBP": "£|GBP", "HKD": "HK[$]|HKD",
    "HUF": "HUF", "ILS": "₪|ILS", "INR": r"₹|INR|Rs\.?", "JPY": "¥|JPY", "KRW": "₩|KRW", "MXN": "MXN",
    "NGN": "NGN", "NOK": "NOK", "NZD": "NZ[$]|NZD", "PHP": "PHP", "PLN": "zł|PLN", "RUB": "₽|RUB",
    "SEK": "SEK", "SGD": "SGD", "THB": "฿|THB", "TRY": "₺|TRY", "UAH": "₴|UAH", "USD": "US[$]|[$]|USD",
    "ZAR": "ZAR", "cents": "¢", "kr": r"kr\.?",
}  # fmt: skip
"""Regular expression of each currency."""


@dataclass(frozen=True)
class Unit:
    """A unit, as it is written after a number."""

    factor: str  # Value in the unit of its scale, as text
    spelling: str  # Regular expression, without capturing groups


MULTIPLES = {
    "thousand": Unit("e3", r"[Kk]|[Tt]housand|[Tt]sd\.?"),
    "lakh": Unit("e5", "(?i:lakhs?|lacs?)"),
    "million": Unit("e6", r"(?i:mm|m|mn|mln|millions?|mill\.?|mio\.?)"),
    "crore": Unit("e7", r"(?i:crores?|cr\.?)"),
    "billion": Unit("e9", r"(?i:b|bn|bln|billions?|mrd\.?)"),
    "trillion": Unit("e12", "(?i:t|tn|trn|trillions?)"),
}
"""Multipliers, by powers of ten."""

DOUBTFUL_MULTIPLE = "^(?:[mbBtT]|(?i:mm|cr))$"
"""Regular expression of what is a multiplier only together with a currency or another multiplier."""

LETTER_MULTIPLE = "^[kKM]$"
"""Regular expression of what may also be a letter of house numbers (`12K`), where it is rare."""

# The largest unit comes first. What the units of a scale are converted into has the factor 1.
SCALES: dict[Scale, tuple[Unit, ...]] = {
    "time": (
        Unit("604800", "(?i:w|wks?|weeks?)"),
        Unit("86400", "(?i:d|days?)"),
        Unit("3600", r"(?i:h|hrs?\.?|hours?|std\.?)"),
        Unit("60", r"(?i:m|mins?\.?|minutes?)"),
        Unit("1", "(?i:s|secs?|seconds?)"),
        Unit("0.001", "(?i:ms|msecs?|milliseconds?)"),
    ),
    "calendar": (Unit("12", "(?i:y|yrs?|years?)"), Unit("1", "(?i:m|mos?|mths?|months?)")),
    "length": (
        Unit("1609.344", "(?i:mi|miles?)"),
        Unit("1000", "(?i:km)"),
        Unit("1", "(?i:m|met(?:er|re)s?)"),
        Unit("0.9144", "(?i:yds?|yards?)"),
        Unit("0.3048", "(?i:ft[.]?|feet|foot)|['\u2019\u2032]"),
        Unit("0.0254", "(?i:in[.]?|inch(?:es)?)|[\"\u201d\u2033]|''"),
        Unit("0.01", "(?i:cm)"),
        Unit("0.001", "(?i:mm)"),
    ),
    "mass": (
        Unit("1000", "(?i:t|tons?|tonnes?)"),
        Unit("6.35029318", "(?i:st|stones?)"),
        Unit("1", "(?i:kgs?|kilos?)"),
        Unit("0.45359237", r"(?i:lbs?\.?|pounds?)"),
        Unit("0.028349523125", r"(?i:oz\.?|ounces?)"),
        Unit("0.001", "(?i:g|grams?)"),
        Unit("0.000001", "(?i:mg)"),
    ),
    "volume": (
        Unit("1", "(?i:l|lit(?:er|re)s?)"), Unit("0.1", "dl"), Unit("0.01", "(?i:cl)"),
        Unit("0.001", "(?i:ml)"),
    ),
    "bytes": (
        Unit("1000000000000", "(?i:tb)"), Unit("1000000000", "(?i:gb)"), Unit("1000000", "(?i:mb)"),
        Unit("1000", "(?i:kb)"), Unit("1", "B|(?i:bytes?)"),
    ),
    "hertz": (
        Unit("1000000000", "(?i:ghz)"), Unit("1000000", "(?i:mhz)"), Unit("1000", "(?i:khz)"),
        Unit("1", "(?i:hz)"),
    ),
    "watts": (Unit("1000000", "MW"), Unit("1000", "(?i:kw)"), Unit("1", "W|(?i:watts?)")),
}  # fmt: skip

SCALE_NAMES: dict[Scale, str] = {
    "time": "seconds", "calendar": "months", "length": "metres", "mass": "kilograms",
    "volume": "litres", "bytes": "bytes", "hertz": "hertz", "watts": "watts",
}  # fmt: skip
"""Units into which the units of each scale are converted."""


def unit_pattern(unit: str) -> str:
    """Returns the regular expression of a unit, in all of its spellings if it is known."""
    spellings = [
        candidate.spelling
        for units in SCALES.values()
        for candidate in units
        if re.fullmatch(candidate.spelling, unit)
    ]
    if len(spellings) == 1:  # `m` may be metres, minutes or months
        return f"(?:{spellings[0]})"
    if unit.isalpha() and len(unit) > 2:
        return f"(?i:{re.escape(unit.lower().removesuffix('s'))}s?)"
    return f"(?i:{re.escape(unit)})"
