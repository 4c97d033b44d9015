"""Durations, as written on the command line: `90s`, `15m`, `6h`, `2d`, `1w`, `1h30m`."""

import re

from pipelines.errors import BadInputError

LONGEST_SECS = 3_660 * 86_400

_SECS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,9})\s*([wdhms])")


def parse_duration(text: str, option: str) -> int:
    """Returns a duration in seconds.

    Raises:
      BadInputError: It has another form, is zero, or longer than ten years.
    """
    compact = text.strip().lower()
    parts = _PART.findall(compact)
    if not parts or _PART.sub("", compact).strip():
        raise BadInputError(
            f"{option} takes numbers with their units (s, m, h, d, w), such as 90s, 6h or 1h30m. "
            f"Received: {text!r}"
        )
    secs = sum(int(number) * _SECS[unit] for number, unit in parts)
    if not secs:
        raise BadInputError(f"{option} must be longer than nothing. Received: {text!r}")
    if secs > LONGEST_SECS:
        raise BadInputError(
            f"{option} must be at most {LONGEST_SECS // 86_400}d. Received: {text!r}"
        )
    return secs


def format_duration(secs: float) -> str:
    """Returns seconds in the form that `parse_duration` reads, rounded to the second."""
    left = round(secs)
    text = ""
    for unit, size in _SECS.items():
        if unit != "w" and left >= size:
            text += f"{left // size}{unit}"
            left %= size
    return text or "0s"
