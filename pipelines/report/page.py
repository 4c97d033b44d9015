"""Renders the report of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from pipelines.report.templates import render


@dataclass(frozen=True)
class Section:
    """A section of a report."""

    id: str  # Id of its element; its template is `sections/<id>.html.j2`
    title: str
    # Function that returns the values for the template; None leaves the section out.
    describe: Callable[[Context], dict[str, Any] | None]

    @property
    def template(self) -> str:
        """Path of its template."""
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
    svg_of: Callable[[Plot], str] = lambda plot: plot.svg,
) -> str:
    """Returns the report of a run as HTML.

    `svg_of`: function that returns a plot as SVG; see `KeptPlots`.
    """
    described = {one.id: one.describe(context) for one in SECTIONS}
    return render(
        "report.html.j2",
        name=context.record.name,
        run_id=context.record.run_id,
        state=state,
        svg_of=svg_of,
        has_index=has_index,
        sections=described,
        shown=[one for one in SECTIONS if described[one.id] is not None],
    )
