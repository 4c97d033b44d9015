"""Renders the index of a root: all runs, the version that serves, and the metric over time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.data.spans import describe_spans
from pipelines.report import words
from pipelines.report.plots import Plot
from pipelines.report.sections.history import metric_plot, newest_metric
from pipelines.report.templates import render
from pipelines.root import Root
from pipelines.root.records import RunRecord


def render_index(
    root: Root,
    records: Sequence[RunRecord],
    state: str = "",
    has_reports: bool = True,
    svg_of: Callable[[Plot], str] = lambda plot: plot.svg,
) -> str:
    """Returns the index as HTML.

    `svg_of`: function that returns a plot as SVG; see `KeptPlots`.
    """
    reports = {
        one.run_id: f"{one.run_id}.html"
        for one in records
        if has_reports and one.status != "running" and root.report(one.run_id).exists()
    }
    metric = newest_metric(records)
    served = root.versions.served()
    states = {one.version: root.versions.state(one.version) for one in records}
    return render(
        "index.html.j2",
        name=records[-1].name if records else root.path.name,
        root=str(root),
        state=state,
        svg_of=svg_of,
        metric=metric,
        serving=_serving(str(served[-1]), records, metric, reports) if served else None,
        facts=_facts(records, len(served)),
        plot=metric_plot(records, metric),
        has_spans=any(one.spans for one in records),
        rows=[_row(one, states[one.version], metric, reports) for one in reversed(records)],
    )


def _serving(
    version: str, records: Sequence[RunRecord], metric: str, reports: Mapping[str, str]
) -> dict[str, Any]:
    pushed = [one for one in records if one.version == version]
    if not pushed:
        return {"version": version, "run_id": "", "report": "", "time": "", "metric": ""}
    run = pushed[-1]
    value = run.metrics.get(metric)
    return {
        "version": version,
        "run_id": run.run_id,
        "report": reports.get(run.run_id, ""),
        "time": words.moment(run.finished or run.started),
        "metric": metric if value is not None else "",
        "value": words.number(value),
    }


def _facts(records: Sequence[RunRecord], num_served: int) -> list[tuple[str, str]]:
    counts = dict.fromkeys(words.STATES, 0)
    for one in records:
        counts[one.shown_status] = counts.get(one.shown_status, 0) + 1
    facts = [("Runs", words.number(len(records)))]
    facts += [
        (words.state(status)["word"], words.number(count))
        for status, count in counts.items()
        if count
    ]
    return [*facts, ("Versions for a rollback", words.number(max(0, num_served - 1)))]


def _row(
    record: RunRecord, state: str | None, metric: str, reports: Mapping[str, str]
) -> dict[str, Any]:
    withdrawn = record.status == "pushed" and state == "withdrawn"
    return {
        "run_id": record.run_id,
        "report": reports.get(record.run_id, ""),
        "time": words.moment(record.started),
        "state": words.state("withdrawn" if withdrawn else record.shown_status),
        "version": record.version or "",
        "version_state": "" if withdrawn else state or "",
        "serves": state == "serving",
        "value": words.number(record.metrics.get(metric)),
        "baseline": words.number(record.baseline_metrics.get(metric)),
        "took": words.seconds(words.duration_secs(record.started, record.finished)),
        "spans": describe_spans(record.spans) if record.spans else "",
        "reason": record.reason or "",
    }
