"""Plots of a report, drawn with matplotlib, which is imported when a plot is drawn."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.svg import Color, for_page

_WIDTH_INCHES, _HEIGHT_INCHES = 4.0, 3.0
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "svg.id": None,
    "font.size": 10,
    "axes.edgecolor": Color.MUTED.value,
    "axes.labelcolor": Color.INK.value,
    "axes.titlecolor": Color.INK.value,
    "text.color": Color.INK.value,
    "xtick.color": Color.MUTED.value,
    "ytick.color": Color.MUTED.value,
    "xtick.labelcolor": Color.INK.value,
    "ytick.labelcolor": Color.INK.value,
    "grid.color": Color.LINE.value,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.6,
    "axes.formatter.limits": (-4, 6),
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": True,
}


@dataclass(frozen=True)
class Plot:
    """A plot for a page. It is drawn when its SVG is requested."""

    title: str
    description: str  # Description of the plot's message
    content: str  # Text with everything that the SVG depends on
    draw: Callable[[], str]  # Function that draws the plot and returns it as SVG

    @property
    def svg(self) -> str:
        """The plot as SVG, drawn each time."""
        return self.draw()


@dataclass(frozen=True)
class Series:
    """A line of a plot."""

    name: str  # Name in the legend; empty leaves it out
    points: Sequence[tuple[float, float]]  # Points (x, y), in order
    is_baseline: bool = False  # True for the series that others are compared with


def plot_of(
    name: str,
    title: str,
    description: str,
    data: object,
    paint: Callable[[Any], None],
) -> Plot:
    """Returns a plot.

    `data`: everything that `paint` draws, and the kind of plot; its `repr` identifies the plot.
    """

    def draw() -> str:
        import matplotlib
        from matplotlib.figure import Figure

        with matplotlib.rc_context(_SETTINGS):
            figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained")
            axes = figure.add_subplot()
            paint(axes)
            target = io.StringIO()
            figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
        return for_page(target.getvalue(), name, title, description)

    return Plot(title, description, repr((name, title, description, data)), draw)


def lines(
    name: str,
    title: str,
    description: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
) -> Plot:
    """Returns a plot of lines over steps or runs; a line of few points has markers."""

    def paint(axes: Any) -> None:
        for number, one in enumerate(series):
            axes.plot(
                *zip(*one.points, strict=True),
                label=one.name or None,
                color=(Color.BASELINE if one.is_baseline or number % 2 else Color.MODEL).value,
                linestyle=_DASHES[number % len(_DASHES)],
                marker=_MARKERS[number % len(_MARKERS)] if len(one.points) < 30 else None,
                markersize=4,
            )
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.margins(x=0.02)
        if len(series) > 1 and any(one.name for one in series):
            axes.legend()

    data = ("lines", series, x_label, y_label)
    return plot_of(name, title, description, data, paint)


def unit_square(
    name: str,
    title: str,
    description: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    diagonal: str = "",
) -> Plot:
    """Returns a plot whose axes are both shares, such as a ROC curve."""

    def paint(axes: Any) -> None:
        if diagonal:
            axes.plot([0, 1], [0, 1], color=Color.MUTED.value, linewidth=1, linestyle=_DASHES[2],
                      label=diagonal)  # fmt: skip
        for one in series:
            axes.plot(
                *zip(*one.points, strict=True),
                label=one.name,
                color=(Color.BASELINE if one.is_baseline else Color.MODEL).value,
                linestyle=_DASHES[1] if one.is_baseline else "-",
            )
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03), xlabel=x_label, ylabel=y_label)
        axes.legend(loc="best")

    data = ("unit_square", series, x_label, y_label, diagonal)
    return plot_of(name, title, description, data, paint)


def calibration(
    name: str,
    title: str,
    description: str,
    rows: Sequence[Mapping[str, float]],
    baseline: Sequence[Mapping[str, float]] = (),
    x_label: str = "predicted probability",
    y_label: str = "observed share",
) -> Plot:
    """Returns a calibration plot: observed against predicted, with intervals."""

    def paint(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color=Color.MUTED.value, linewidth=1, linestyle=_DASHES[2],
                  label="calibrated")  # fmt: skip
        if baseline:
            axes.plot(
                [row["predicted"] for row in baseline],
                [row["happened"] for row in baseline],
                color=Color.BASELINE.value,
                linestyle=_DASHES[1],
                marker="s",
                markersize=3.5,
                label="baseline",
            )
        happened = [row["happened"] for row in rows]
        below = [max(0.0, row["happened"] - row["low"]) for row in rows]
        above = [max(0.0, row["high"] - row["happened"]) for row in rows]
        axes.errorbar(
            [row["predicted"] for row in rows],
            happened,
            yerr=[below, above],
            color=Color.MODEL.value,
            ecolor=Color.MODEL.value,
            elinewidth=1,
            capsize=2,
            marker="o",
            markersize=4,
            label="model",
        )
        top = max([row["high"] for row in rows] + [row["predicted"] for row in rows])
        reach = min(1.02, max(0.1, top * 1.08))
        axes.set(xlim=(-0.01, reach), ylim=(-0.01, reach), xlabel=x_label, ylabel=y_label)
        # Above the axes, since points may be anywhere within them.
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0)

    data = ("calibration", rows, baseline, x_label, y_label)
    return plot_of(name, title, description, data, paint)


def two_histograms(
    name: str,
    title: str,
    description: str,
    counts: Sequence[Sequence[float]],
    names: Sequence[str],
    x_label: str,
) -> Plot:
    """Returns histograms of the probabilities of two classes, in intervals of equal width from 0 to 1."""

    def paint(axes: Any) -> None:
        for number, (values, label) in enumerate(zip(counts, names, strict=True)):
            total = sum(values) or 1.0
            edges = [index / len(values) for index in range(len(values) + 1)]
            axes.stairs(
                [value / total for value in values],
                edges,
                fill=number == 0,
                facecolor=Color.LINE.value if number == 0 else "none",
                edgecolor=Color.MODEL.value if number else Color.MUTED.value,
                linewidth=1.8 if number else 0.8,
                label=label,
            )
        axes.set(xlim=(0, 1), xlabel=x_label, ylabel="share of the class")
        axes.legend(loc="best")

    data = ("two_histograms", counts, names, x_label)
    return plot_of(name, title, description, data, paint)


def histogram(
    name: str,
    title: str,
    description: str,
    counts: Sequence[float],
    edges: Sequence[float],
    x_label: str,
) -> Plot:
    """Returns a histogram, with a line at 0."""

    def paint(axes: Any) -> None:
        axes.stairs(
            counts, edges, fill=True, facecolor=Color.MODEL.value, edgecolor=Color.PANEL.value
        )
        axes.axvline(0, color=Color.INK.value, linewidth=1, linestyle=_DASHES[1])
        axes.set(xlabel=x_label, ylabel="examples")

    data = ("histogram", counts, edges, x_label)
    return plot_of(name, title, description, data, paint)


def scatter(
    name: str,
    title: str,
    description: str,
    points: Sequence[tuple[float, float]],
    x_label: str,
    y_label: str,
) -> Plot:
    """Returns a scatter plot with the diagonal on which both coordinates are equal."""

    def paint(axes: Any) -> None:
        values = [value for point in points for value in point]
        low, high = min(values), max(values)
        axes.plot([low, high], [low, high], color=Color.MUTED.value, linewidth=1,
                  linestyle=_DASHES[2], label="equal")  # fmt: skip
        axes.plot(
            *zip(*points, strict=True),
            linestyle="none",
            marker="o",
            markersize=3,
            markeredgewidth=0,
            color=Color.MODEL.value,
            alpha=0.45,
            label="an example",
        )
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.legend(loc="upper left")

    data = ("scatter", points, x_label, y_label)
    return plot_of(name, title, description, data, paint)


def dots_and_best(
    name: str,
    title: str,
    description: str,
    points: Sequence[tuple[float, float]],
    best: Sequence[tuple[float, float]],
    x_label: str,
    y_label: str,
) -> Plot:
    """Returns a plot of values by number, with the best one so far as a line of steps."""

    def paint(axes: Any) -> None:
        axes.plot(
            *zip(*points, strict=True),
            linestyle="none",
            marker="o",
            markersize=4,
            color=Color.BASELINE.value,
            label="a trial",
        )
        axes.step(
            *zip(*best, strict=True),
            where="post",
            color=Color.MODEL.value,
            label="the best so far",
        )
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(loc="best")

    data = ("dots_and_best", points, best, x_label, y_label)
    return plot_of(name, title, description, data, paint)
