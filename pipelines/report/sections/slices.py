"""Section of the metrics by slice, with intervals."""

from collections.abc import Mapping
from typing import Any

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.root.check_records import OVERALL

MAX_OPEN = 30
"""Number of slices that are shown at first."""


def describe(context: Context) -> dict[str, Any] | None:
    """Returns a row for each slice; None without slices."""
    record = context.record
    if not record.slices:
        return None
    details = context.details.get("evaluation", {}).get("slices", {})
    measured: Mapping[str, Any] = details.get("slices", {})
    # The first metric with an interval is drawn, or the first one.
    with_interval = (name for name in record.metrics if name in record.intervals)
    metric = next(with_interval, next(iter(record.metrics), ""))
    names = [metric, *(name for name in record.metrics if name != metric)]
    entries = {OVERALL: record.metrics, **record.slices}
    spans = {
        name: words.within_range(
            metric, *(measured.get(name, {}).get("intervals", {}).get(metric) or (None, None))
        )
        for name in entries
    }
    values = [metrics.get(metric) for metrics in entries.values()]
    ends = [end for pair in spans.values() for end in pair if end is not None]
    shown = [value for value in (*values, *ends) if value is not None]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    rows = []
    for name, metrics in entries.items():
        value = metrics.get(metric)
        interval = spans[name]
        rows.append(
            {
                "name": "All examples" if name == OVERALL else name,
                "is_all": name == OVERALL,
                "size": words.number(
                    measured.get(name, {}).get("num_examples", metrics.get("example_count"))
                ),
                "value": words.metric(metric, value),
                "interval": words.metric_interval(metric, *interval),
                "whisker": _whisker(value, interval, low, high),
                "others": [words.metric(other, metrics.get(other)) for other in names[1:]],
            }
        )
    return {
        "metric": metric,
        "others": names[1:],
        "rows": rows[: MAX_OPEN + 1],
        "more": rows[MAX_OPEN + 1 :],
        "confidence": details.get("confidence"),
        "missing": None if measured else context.missing("Evaluator"),
    }


def _whisker(
    value: float | None, interval: tuple[float | None, float | None], low: float, high: float
) -> dict[str, float] | None:
    """Returns the places of the value and its interval, from 2 to 98."""
    if value is None or high <= low:
        return None
    ends = [2 + 96 * ((end - low) / (high - low)) if end is not None else None for end in interval]
    at = 2 + 96 * (value - low) / (high - low)
    return {
        "at": at,
        "low": 0.0 if ends[0] is None else ends[0],
        "high": 100.0 if ends[1] is None else ends[1],
        "has_interval": float(interval != (None, None)),
    }
