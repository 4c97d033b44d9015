"""Section of the root's history: the metric over time, and the pushed versions."""

from collections.abc import Sequence
from typing import Any

from pipelines.data.spans import describe_spans
from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.plots import Plot, PlotText, Series, lines
from pipelines.root.records import RunRecord

_MAX_PUSHES = 25


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the pushes and the plot of the metric; None if this is the first run of the root."""
    records = context.records[: context.number]
    pushes = [run for run in reversed(records) if run.version]
    if len(records) < 2 and not pushes:
        return None
    metric = next(iter(context.record.metrics), "") or newest_metric(records)
    return {
        "rows": [
            {
                "version": run.version,
                "state": context.root.versions.state(run.version),
                "run_id": run.run_id,
                "is_this": run.run_id == context.record.run_id,
                "time": words.moment(run.finished or run.started),
                "value": words.metric(metric, run.metrics.get(metric)),
                "spans": describe_spans(run.spans) if run.spans else "",
            }
            for run in pushes[:_MAX_PUSHES]
        ],
        "left_out": len(pushes) - len(pushes[:_MAX_PUSHES]),
        "has_spans": any(run.spans for run in pushes),
        "metric": metric,
        "plot": metric_plot(records, metric),
    }


def newest_metric(records: Sequence[RunRecord]) -> str:
    """Returns the first metric of the newest run that has any; empty without one."""
    return next((next(iter(run.metrics)) for run in reversed(records) if run.metrics), "")


def metric_plot(records: Sequence[RunRecord], metric: str) -> Plot | None:
    """Returns a plot of a metric over the runs, with that of the live model on the same examples.

    None with fewer than two values.
    """
    points = [
        (number, value, run.baseline_metrics.get(metric))
        for number, run in enumerate(records, 1)
        if (value := run.metrics.get(metric)) is not None
    ]
    if len(points) < 2:
        return None
    series = [Series("new model", [(number, value) for number, value, _ in points])]
    of_baseline = [(number, value) for number, _, value in points if value is not None]
    if of_baseline:
        series.append(Series("baseline", of_baseline, is_baseline=True))
    values = [value for _, value, _ in points]
    text = (
        f"{metric} of {len(points)} runs, from {words.metric(metric, values[0])} in the first to "
        f"{words.metric(metric, values[-1])} in the last; the lowest is "
        f"{words.metric(metric, min(values))}, the highest {words.metric(metric, max(values))}."
    )
    return lines(PlotText("history", f"{metric} over the runs", text), series, "run", metric)
