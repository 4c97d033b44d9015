r"""Numbers as people write them: `$1,234.50`, `0,27`, `12 %`, `(5.00)`, `1 234,5 €`.

Regular expressions here are RE2's, and mean the same to Python's `re`.
"""

from dataclasses import dataclass
from typing import Literal

DecimalMark = Literal[".", ","]

_SPACE = " \t\u00a0\u2009\u202f"
_CURRENCY = (
    "(?:[$€£¥₹₽₩₺₴₪฿¢]|(?:US|CA|AU|NZ|HK|R|A|C)[$]|USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|CNY|INR|SEK|NOK"
    "|DKK|PLN|CZK|HUF|RUB|BRL|MXN|ZAR|KRW|SGD|HKD|TRY|kr|zł|Fr\\.)"
)
_SIGN = "[-+\u2212]"


@dataclass(frozen=True)
class NumberFormat:
    """A format of numbers. White space, a currency, a percent sign and signs may surround them.

    Attributes:
      decimal: Mark between the integer and the fraction. The other of the two marks, white space and
        apostrophes separate thousands.
    """

    decimal: DecimalMark

    @property
    def pattern(self) -> str:
        """Regular expression of a whole cell without white space around it."""
        mark, other = ("[.]", ",") if self.decimal == "." else (",", "[.]")
        separator = f"(?:{other}|['\u2019{_SPACE}])"
        grouped = f"[1-9][0-9]{{0,2}}(?:{separator}[0-9]{{3}})+"
        digits = f"(?:{grouped}|[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+"
        body = f"(?:{digits})(?:[eE][-+]?[0-9]+)?"
        space = f"[{_SPACE}]*"
        whole = (
            f"{_SIGN}?{space}(?:{_CURRENCY}{space})?{_SIGN}?{body}{space}(?:%|{_CURRENCY})?{space}"
        )
        return f"^(?:{whole}|[(]{space}(?:{_CURRENCY}{space})?{body}{space}(?:%|{_CURRENCY})?[)])$"

    @property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """Replacements, in order, that turn a cell that matches into a plain number."""
        other = "," if self.decimal == "." else "[.]"
        return (
            (_CURRENCY, ""),
            (f"[%'\u2019{_SPACE}]|{other}", ""),
            (",", "."),
            ("\u2212", "-"),
            (r"^[(](.*)[)]$", r"-\1"),
            ("^[+]", ""),
        )

    @property
    def plain(self) -> str:
        """Regular expression of a cell that `float` and TensorFlow read directly."""
        return r"^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"


PERCENT = "%[^%]*$"
"""Regular expression of a number that has to be divided by 100."""

CURRENCY = _CURRENCY
"""Regular expression of an amount of money."""

POINT = NumberFormat(".")
COMMA = NumberFormat(",")

AMBIGUOUS = "^[^0-9]*[1-9][0-9]{0,2}[.,][0-9]{3}[^0-9]*$"
"""Regular expression of `1,234`: one mark with three digits after it. It may be of either kind."""
