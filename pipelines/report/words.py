"""Formats numbers, times and states for readers; has the filters of the templates."""

from datetime import datetime
from typing import Any

NOTHING = "\N{EN DASH}"
"""Placeholder for a missing value."""

STATES = {
    "pushed": ("✓", "pushed", "good"),
    "unchanged": ("=", "unchanged", "info"),
    "finished": ("✓", "finished", "good"),
    "held": ("?", "held", "warn"),
    "approved": ("✓", "approved", "good"),
    "rejected": ("✗", "rejected", "warn"),
    "superseded": ("=", "superseded", "info"),
    "not_blessed": ("✗", "not blessed", "warn"),
    "failed": ("✗", "failed", "bad"),
    "interrupted": ("■", "interrupted", "bad"),
    "running": ("▶", "running", "info"),
    "withdrawn": ("↩", "withdrawn", "warn"),
}
"""Mark, word and CSS class by status."""


def number(value: float | None, digits: int = 5) -> str:
    """Returns a number with `digits` significant digits; a dash for None."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1_000 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def counted(count: float, noun: str, plural: str = "") -> str:
    """Returns a count with its noun, such as `1 column` or `2 columns`; `plural` is for irregular nouns."""
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"


def signed(value: float | None, digits: int = 4) -> str:
    return NOTHING if value is None else f"{value:+.{digits}g}".replace("-", "\N{MINUS SIGN}")


def percent(share: float | None, digits: int = 1) -> str:
    return NOTHING if share is None else f"{100 * share:.{digits}f} %"


def relative(growth: float, start: float) -> str:
    """Returns a growth relative to its start, such as `+9.4 %`; if it at least doubles, as a factor."""
    if not start:
        return NOTHING
    share = growth / start
    return f"\N{MULTIPLICATION SIGN}{number(1 + share, 3)}" if share >= 1 else f"{signed(100 * share, 3)} %"


def seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(value: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def moment(text: str | None) -> str:
    """Returns a time of a record, such as `2026-01-31 17:59:59 UTC`; `now` for None."""
    if not text:
        return "now"
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return time.strftime("%Y-%m-%d %H:%M:%S") + (" UTC" if time.tzinfo else "")


_PERCENTAGES = ("precision", "recall", "specificity", "interval_coverage", "mean_absolute_percentage_error")
_SHARES = ("accuracy", "auc", "precision", "recall")


def within_range(metric: str, low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Returns the part of an interval that the metric can take: a share lies between 0 and 1.

    The intervals of a few examples, from Student's t distribution, reach further.
    """
    if any(word in metric for word in _SHARES):
        low = None if low is None else max(low, 0.0)
        high = None if high is None else min(high, 1.0)
    return low, high


def is_percentage(metric: str) -> bool:
    """Returns whether a metric is a share of rows or of a value, which people give in percent."""
    base = metric.partition("@")[0]
    return base.endswith("accuracy") or base.startswith(_PERCENTAGES)


def metric(name: str, value: float | None, digits: int = 5) -> str:
    """Returns the value of a metric; one digit less for a percentage, such as `2.6 %` with four."""
    if value is None or not is_percentage(name):
        return number(value, digits)
    text = f"{100 * value:.{digits - 1}g}"
    if float(text) == 100 and value != 1:
        text = f"{100 * value:.6g}"
    return f"{text} %"


def metric_interval(name: str, low: float | None, high: float | None) -> str:
    """Returns the interval of a metric, such as `0.1 to 0.14` or `86.5 % to 92.8 %`."""
    if low is None and high is None:
        return NOTHING
    ends = within_range(name, low, high)
    return " to ".join("no bound" if end is None else metric(name, end, 4) for end in ends)


def metric_change(name: str, change: float | None, digits: int = 4) -> str:
    """Returns the difference of two values of a metric; of percentages, in points."""
    if change is None or not is_percentage(name):
        return signed(change, digits)
    return f"{signed(100 * change, digits - 1)} points"


def interval(low: float | None, high: float | None, digits: int = 4) -> str:
    """Returns an interval, such as `0.1 to 0.14`; a dash if it is unknown."""
    if low is None and high is None:
        return NOTHING
    ends = ("no bound" if end is None else number(end, digits) for end in (low, high))
    return " to ".join(ends)


def duration_secs(started: str, finished: str | None) -> float | None:
    """Returns the seconds between two times of a record; None if one is unknown."""
    try:
        begin, end = datetime.fromisoformat(started), datetime.fromisoformat(finished or "")
    except ValueError:
        return None
    return (end - begin).total_seconds()


def state(status: str) -> dict[str, Any]:
    """Returns the `mark`, the `word` and the `tone` that show a status."""
    mark, word, tone = STATES.get(status, ("", status, "info"))
    return {"mark": mark, "word": word, "tone": tone}
