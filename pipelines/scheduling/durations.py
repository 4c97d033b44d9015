"""Durations, as written on the command line: `90s`, `15m`, `6h`, `2d`, `1w`, `1h30m`."""

import re

from pipelines.errors import BadInputError

LONGEST_SECS = 3_660 * 86_400

_SECS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,9})\s*([wdhms])")


def parse_duration(text: str, option: str) -> int:
    """Returns a duration in seconds; one of another form, zero, or too long is refused."""
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
    """Returns seconds in the form that `parse_duration` reads, without weeks, rounded to the second."""
    text, left = "", round(secs)
    for unit in "dhms":
        count, left = divmod(left, _SECS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"
