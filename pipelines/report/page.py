"""Renders the report of a run, and the index of a root, from their templates."""

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pipelines.data.spans import describe_spans
from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.plots import Plot
from pipelines.report.sections import (
    changes,
    components,
    data,
    drift,
    history,
    importance,
    origin,
    quality,
    search,
    serving,
    slices,
    training,
    verdict,
)
from pipelines.report.sections.history import metric_plot, newest_metric
from pipelines.root import Root
from pipelines.root.records import RunRecord


@dataclass(frozen=True)
class Section:
    id: str  # Id of its element; its template is `sections/<id>.html.j2`
    title: str
    # Function that returns the values for the template; None leaves the section out.
    describe: Callable[[Context], dict[str, Any] | None]

    @property
    def template(self) -> str:
        return f"sections/{self.id}.html.j2"


SECTIONS = (
    Section("verdict", "Verdict", verdict.describe),
    Section("components", "Components", components.describe),
    Section("changes", "Changes since the previous run", changes.describe),
    Section("data", "Data", data.describe),
    Section("drift", "Drift and anomalies", drift.describe),
    Section("search", "Hyperparameters", search.describe),
    Section("training", "Training", training.describe),
    Section("quality", "Quality", quality.describe),
    Section("slices", "Slices", slices.describe),
    Section("importance", "Feature importance", importance.describe),
    Section("serving", "Serving", serving.describe),
    Section("history", "History", history.describe),
    Section("origin", "Lineage and environment", origin.describe),
)


def render_report(
    context: Context,
    state: str = "",
    has_index: bool = False,
    to_svg: Callable[[Plot], str] = lambda plot: plot.svg,
) -> str:
    """Returns the report of a run as HTML."""
    described = {section.id: section.describe(context) for section in SECTIONS}
    return render(
        "report.html.j2",
        name=context.record.name,
        run_id=context.record.run_id,
        state=state,
        to_svg=to_svg,
        has_index=has_index,
        sections=described,
        shown=[section for section in SECTIONS if described[section.id] is not None],
        last_line=context.record.last_line,
    )


def render_index(
    root: Root,
    records: Sequence[RunRecord],
    state: str = "",
    has_reports: bool = True,
    to_svg: Callable[[Plot], str] = lambda plot: plot.svg,
) -> str:
    """Returns the index as HTML."""
    reports = {
        run.run_id: f"{run.run_id}.html"
        for run in records
        if has_reports and run.status != "running" and root.report(run.run_id).exists()
    }
    metric = newest_metric(records)
    served = root.versions.served()
    states = {run.version: root.versions.state(run.version) for run in records}
    return render(
        "index.html.j2",
        name=records[-1].name if records else root.path.name,
        root=str(root),
        state=state,
        to_svg=to_svg,
        metric=metric,
        serving=_serving(str(served[-1]), records, metric, reports) if served else None,
        facts=_facts(records, len(served)),
        plot=metric_plot(records, metric),
        has_spans=any(run.spans for run in records),
        rows=[_row(run, states[run.version], metric, reports) for run in reversed(records)],
    )


def _serving(
    version: str, records: Sequence[RunRecord], metric: str, reports: Mapping[str, str]
) -> dict[str, Any]:
    pushed = [other for other in records if other.version == version]
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
        "value": words.metric(metric, value),
    }


def _facts(records: Sequence[RunRecord], num_served: int) -> list[tuple[str, str]]:
    counts = dict.fromkeys(words.STATES, 0)
    for run in records:
        counts[run.shown_status] = counts.get(run.shown_status, 0) + 1
    facts = [("Runs", words.number(len(records)))]
    facts += [(words.state(status)["word"], words.number(count)) for status, count in counts.items() if count]
    return [*facts, ("Versions for a rollback", words.number(max(0, num_served - 1)))]


def _row(record: RunRecord, state: str | None, metric: str, reports: Mapping[str, str]) -> dict[str, Any]:
    withdrawn = record.status == "pushed" and state == "withdrawn"
    return {
        "run_id": record.run_id,
        "report": reports.get(record.run_id, ""),
        "time": words.moment(record.started),
        "state": words.state("withdrawn" if withdrawn else record.shown_status),
        "version": record.version or "",
        "version_state": "" if withdrawn else state or "",
        "serves": state == "serving",
        "value": words.metric(metric, record.metrics.get(metric)),
        "baseline": words.metric(metric, record.baseline_metrics.get(metric)),
        "took": words.seconds(words.duration_secs(record.started, record.finished)),
        "spans": describe_spans(record.spans) if record.spans else "",
        "reason": record.reason or "",
    }


FOLDER = Path(__file__).parent / "templates"

_BREAKS = re.compile(r"(?<=[^\W_][_./:-])(?=[^\W_])")


def render(template: str, **values: Any) -> str:
    style, script = _asset("style.css"), _asset("filter.js")
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    text: str = (
        _environment()
        .get_template(template)
        .render(
            style=style,
            style_hash=_source_hash(style),
            script=script,
            script_hash=_source_hash(script),
            made=now,
            **values,
        )
    )
    return f"{text.rstrip()}\n"


def breakable(text: object) -> Any:
    """Returns a text for HTML that may be broken into lines after `_`, `.`, `/`, `:` or `-` in a name."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in _BREAKS.split(str(text)))


@functools.cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        breakable=breakable,
        counted=words.counted,
        number=words.number,
        signed=words.signed,
        percent=words.percent,
        size=words.size,
    )
    return environment


@functools.cache
def _asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """Returns the source expression of an inline style or script for a Content Security Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
