r"""Numbers as people write them: `$1,234.50`, `€95.5M`, `12 %`, `(5.00)`, `12 kg`, `5'11"`, `01:23:45`."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pipelines.data.formats.units import CURRENCIES, MULTIPLES, SCALE_NAMES, SCALES, Scale, Unit, unit_pattern

DecimalMark = Literal[".", ","]
Steps = tuple[tuple[str, str], ...]
"""Replacements, in order."""

SPACE = " \t\u00a0\u2009\u202f"
"""White space within a number."""

_ANY_SPACE = f"[{SPACE}]*"
_SIGN = "[-+\u2212]"
_CLOCKS = {
    "h:mm": rf"^({_SIGN}?)(?:([0-9]+) days?,? )?([0-9]+):([0-5][0-9])(?::([0-5][0-9](?:[.][0-9]+)?))?$",
    "m:ss": rf"^({_SIGN}?)(?:([0-9]+) days?,? )?(?:([0-9]+):)?([0-9]+):([0-5][0-9](?:[.][0-9]+)?)$",
}
_BETWEEN = "[ ,]*"
_FEET = "['\u2019\u2032]"
_BARE_INCHES = (f"({_FEET}{_ANY_SPACE}[0-9]+)$", r"\1in")  # 5'11
_ZERO = "0+(?:[.,]0+)?"
_PERCENT = Unit("e-2", "%")
_CLOCK_FACTORS: tuple[float, ...] = (86_400.0, 3_600.0, 60.0, 1.0)

ANY_CURRENCY = "|".join(CURRENCIES.values())
"""Regular expression of an amount of money."""

PLAIN = r"^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"
"""Regular expression of a cell that `float` and TensorFlow read directly."""


@dataclass(frozen=True)
class NumberFormat:
    """The way in which the numbers of a column are written, with signs, or parentheses for negative ones."""

    # Mark between the integer and the fraction. The other of the two marks, white space and
    # apostrophes separate thousands.
    decimal: DecimalMark = "."
    currency: str = ""  # Name of the currency that may stand before or after a number; empty for any
    unit: str = ""  # Unit after each number, which is dropped; only zero needs none. Empty without one.
    # Units that are converted: `multiples` are `K`, `M`, `bn` and the like, which a number may
    # have; with other scales, each number needs a unit, and may have several, as in `5 ft 11 in`.
    scale: Scale | None = None
    # Meaning of `12:34`, where `1:23:45` would be hours, minutes and seconds. The numbers are seconds.
    clock: Literal["h:mm", "m:ss"] | None = None

    @cached_property
    def pattern(self) -> str:
        """Regular expression of a whole cell without white space around it."""
        if self.clock:
            return _CLOCKS[self.clock]
        if self._units:
            parts = [f"{self._digits}{_ANY_SPACE}(?:{unit.spelling})" for unit in self._units]
            chains = (
                "".join((part, *(f"(?:{_BETWEEN}{later})?" for later in parts[number:])))
                for number, part in enumerate(parts, start=1)
            )
            feet = f"|[0-9]+{_FEET}{_ANY_SPACE}[0-9]+" if self.scale == "length" else ""
            return f"^{_SIGN}?(?:{'|'.join(chains)}|{_ZERO}{feet})$"
        money = f"(?:{self._money})?"
        around = f"{_ANY_SPACE}{money}{_ANY_SPACE}"
        amount = f"{self._digits}(?:{'|'.join(self._ends)})"
        if self.unit:
            amount = f"(?:{amount}|{_ZERO})"
        signed = f"(?:{_SIGN}?{around}|{around}{_SIGN})"
        return f"^(?:{signed}{amount}{around}|[(]{around}{amount}{around}[)])$"

    @cached_property
    def terms(self) -> tuple[tuple[Steps, float], ...]:
        """Replacements that turn a cell that matches into a plain number, and its factor.

        The number of a cell is the sum of all terms.
        """
        if self.clock:
            sequence, factors = _CLOCKS[self.clock], _CLOCK_FACTORS
        elif self._units:
            parts = (f"({self._digits}){_ANY_SPACE}(?:{unit.spelling})" for unit in self._units)
            sequence = f"^({_SIGN}?){''.join(f'(?:{_BETWEEN}{part})?' for part in parts)}$"
            factors = tuple(float(unit.factor) for unit in self._units)
        else:
            return ((self._steps, 1.0),)
        return tuple(
            ((_BARE_INCHES, (sequence, rf"\1\{group}"), *self._plain_steps, ("^-?$", "0")), factor)
            for group, factor in enumerate(factors, start=2)
        )

    def describe(self) -> str:
        """Returns the currency or unit in words; empty without one."""
        if self.clock:
            return f"durations or times of day ({self.clock}), in seconds"
        if self.scale and self._units:
            return f"units that are converted into {SCALE_NAMES[self.scale]}"
        return f"in {self.unit}" if self.unit else ""

    @property
    def _units(self) -> tuple[Unit, ...]:
        return () if self.scale is None or self.scale == "multiples" else SCALES[self.scale]

    @property
    def _digits(self) -> str:
        mark, other = ("[.]", ",") if self.decimal == "." else (",", "[.]")
        grouped = f"[1-9][0-9]{{0,2}}(?:(?:{other}|['\u2019{SPACE}])[0-9]{{3}})+"
        return f"(?:(?:{grouped}|[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+)"

    @property
    def _money(self) -> str:
        if self.currency:
            return CURRENCIES[self.currency]
        return "" if self.unit else ANY_CURRENCY

    @property
    def _ends(self) -> tuple[str, ...]:
        """Regular expressions of what may follow the digits, such as a multiple or the unit."""
        exponent = "(?:[eE][-+]?[0-9]+)?"
        if self.unit:
            return (f"{exponent}{_ANY_SPACE}{unit_pattern(self.unit)}",)
        multiples = MULTIPLES.values() if self.scale else ()
        return (exponent, *(f"{_ANY_SPACE}(?:{multiple.spelling})" for multiple in (_PERCENT, *multiples)))

    @property
    def _steps(self) -> Steps:
        """Replacements for a cell with one number."""
        unit = ((f"{_ANY_SPACE}{unit_pattern(self.unit)}([{SPACE})]*)$", r"\1"),) if self.unit else ()
        multiples = MULTIPLES.values() if self.scale else ()
        return (
            *(((f"(?:{self._money})", ""),) if self._money else ()),
            *unit,
            *(
                (f"([0-9.,]){_ANY_SPACE}(?:{multiple.spelling})([{SPACE})]*)$", rf"\1{multiple.factor}\2")
                for multiple in (_PERCENT, *multiples)
            ),
            *self._plain_steps,
        )

    @property
    def _plain_steps(self) -> Steps:
        other = "," if self.decimal == "." else "[.]"
        return (
            (f"['\u2019{SPACE}]|{other}", ""),
            (",", "."),
            ("\u2212", "-"),
            (r"^[(](.*)[)]$", r"-\1"),
            ("^[+]", ""),
        )


POINT = NumberFormat(".")
COMMA = NumberFormat(",")

NUMBER_START = f"^[(]?{_SIGN}?{_ANY_SPACE}(?:{ANY_CURRENCY})?{_ANY_SPACE}{_SIGN}?[0-9]"
"""Regular expression of what starts as a number does."""

AMBIGUOUS = "^[^0-9]*[1-9][0-9]{0,2}[.,][0-9]{3}[^0-9]*$"
"""Regular expression of `1,234`: one mark with three digits after it. It may be of either kind."""


def pattern_and_terms(number_format: NumberFormat | None) -> tuple[str, tuple[tuple[Steps, float], ...]]:
    """Returns `pattern` and `terms` of a format; for None, those of numbers as `float` reads them."""
    if number_format is None:
        return PLAIN, (((), 1.0),)
    return number_format.pattern, number_format.terms
