"""Plots of a report, drawn with matplotlib, which is imported when a plot is drawn; and their cache."""

import functools
import gzip
import hashlib
import io
import json
import logging
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from pipelines import atomic_files
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
    "text.parse_math": False,  # `$50K-$100K` is the name of a class
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

_Data = ParamSpec("_Data")


@dataclass(frozen=True)
class PlotText:
    """Name, title and description of a plot; screen readers read them."""

    name: str  # Unique in the page: letters, digits and hyphens
    title: str
    description: str


@dataclass(frozen=True)
class Plot:
    """A plot for a page. It is drawn when its SVG is requested."""

    title: str
    description: str  # Description of the plot's message
    content: str  # Text with everything that the SVG depends on
    draw: Callable[[], str]  # Function that draws the plot and returns it as SVG

    @property
    def svg(self) -> str:
        return self.draw()


@dataclass(frozen=True)
class Series:
    name: str  # Name in the legend; empty leaves it out
    points: Sequence[tuple[float, float]]  # Points (x, y), in order
    is_baseline: bool = False  # True for the series that others are compared with


def _plot(paint: Callable[Concatenate[Any, _Data], None]) -> Callable[Concatenate[PlotText, _Data], Plot]:
    """Turns a function that paints axes into one that returns a plot, which its arguments identify."""

    @functools.wraps(paint)
    def make(text: PlotText, *data: _Data.args, **more_data: _Data.kwargs) -> Plot:
        def draw() -> str:
            import matplotlib
            from matplotlib.figure import Figure

            with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the browser's font counts
                figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained")
                paint(figure.add_subplot(), *data, **more_data)
                target = io.StringIO()
                figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
            return for_page(target.getvalue(), text.name, text.title, text.description)

        content = repr((paint.__name__, text, data, more_data))
        return Plot(text.title, text.description, content, draw)

    return make


@_plot
def lines(axes: Any, series: Sequence[Series], x_label: str, y_label: str) -> None:
    """A plot of lines over steps or runs; a line of few points has markers."""
    for number, line in enumerate(series):
        axes.plot(
            *zip(*line.points, strict=True),
            label=line.name or None,
            color=(Color.BASELINE if line.is_baseline or number % 2 else Color.MODEL).value,
            linestyle=_DASHES[number % len(_DASHES)],
            marker=_MARKERS[number % len(_MARKERS)] if len(line.points) < 30 else None,
            markersize=4,
        )
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.margins(x=0.02)
    if len(series) > 1 and any(line.name for line in series):
        axes.legend()


@_plot
def unit_square(axes: Any, series: Sequence[Series], x_label: str, y_label: str, diagonal: str = "") -> None:
    """A plot whose axes are both shares, such as a ROC curve."""
    if diagonal:
        axes.plot([0, 1], [0, 1], color=Color.MUTED.value, linewidth=1, linestyle=_DASHES[2],
                  label=diagonal)  # fmt: skip
    for line in series:
        axes.plot(
            *zip(*line.points, strict=True),
            label=line.name,
            color=(Color.BASELINE if line.is_baseline else Color.MODEL).value,
            linestyle=_DASHES[1] if line.is_baseline else "-",
        )
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03), xlabel=x_label, ylabel=y_label)
    axes.legend(loc="best")


@_plot
def calibration(
    axes: Any,
    rows: Sequence[Mapping[str, float]],
    baseline: Sequence[Mapping[str, float]] = (),
    x_label: str = "predicted probability",
    y_label: str = "observed share",
) -> None:
    """A calibration plot: observed against predicted, with intervals."""
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


@_plot
def over_thresholds(axes: Any, series: Sequence[Series], threshold: float) -> None:
    """A plot of shares by threshold, with a line at the model's; low thresholds have more room."""
    for number, line in enumerate(series):
        axes.plot(
            *zip(*line.points, strict=True),
            label=line.name,
            color=(Color.BASELINE if number % 2 else Color.MODEL).value,
            linestyle=_DASHES[number],
        )
    axes.axvline(threshold, color=Color.INK.value, linewidth=1, label="the model's")
    axes.set_xscale("function", functions=(lambda x: abs(x) ** 0.5, lambda x: x**2))
    reach = max([threshold, *(x for line in series for x, _ in line.points)])
    axes.set(xlim=(0, reach), ylim=(-0.01, 1.03), xlabel="threshold")
    axes.legend(loc="best")


@_plot
def two_histograms(axes: Any, counts: Sequence[Sequence[float]], names: Sequence[str], x_label: str) -> None:
    """Histograms of the probabilities of two classes, in intervals of equal width from 0 to 1."""
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


@_plot
def histogram(axes: Any, counts: Sequence[float], edges: Sequence[float], x_label: str) -> None:
    """A histogram, with a line at 0."""
    axes.stairs(counts, edges, fill=True, facecolor=Color.MODEL.value, edgecolor=Color.PANEL.value)
    axes.axvline(0, color=Color.INK.value, linewidth=1, linestyle=_DASHES[1])
    axes.set(xlabel=x_label, ylabel="examples")


@_plot
def scatter(axes: Any, points: Sequence[tuple[float, float]], x_label: str, y_label: str) -> None:
    """A scatter plot with the diagonal on which both coordinates are equal."""
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


@_plot
def dots_and_best(
    axes: Any,
    points: Sequence[tuple[float, float]],
    best: Sequence[tuple[float, float]],
    x_label: str,
    y_label: str,
) -> None:
    """A plot of values by number, with the best one so far as a line of steps."""
    axes.plot(
        *zip(*points, strict=True),
        linestyle="none",
        marker="o",
        markersize=4,
        color=Color.BASELINE.value,
        label="a trial",
    )
    axes.step(*zip(*best, strict=True), where="post", color=Color.MODEL.value, label="the best so far")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="best")


_LOGGER = logging.getLogger(__name__)
_CODE = ("plots.py", "svg.py")


class KeptPlots:
    """Cached plots of a page as SVG, by their content."""

    def __init__(self, file: Path):
        self._file = file
        self._kept = self._read()
        self._used: dict[str, str] = {}

    def to_svg(self, plot: Plot) -> str:
        """Returns a plot as SVG, drawn if it is not cached."""
        key = hashlib.sha256(f"{_code_hash()} {plot.content}".encode()).hexdigest()
        if key not in self._used:
            self._used[key] = self._kept.get(key) or plot.svg
        return self._used[key]

    def write(self) -> None:
        if self._used == self._kept:
            return
        content = gzip.compress(json.dumps(self._used).encode(), mtime=0)
        atomic_files.write(self._file, content)

    def _read(self) -> dict[str, str]:
        try:
            values = json.loads(gzip.decompress(self._file.read_bytes()))
            return atomic_files.checked(values, dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
            _LOGGER.warning("%s cannot be read (%s): plots are drawn again", self._file, error)
            return {}


@functools.cache
def _code_hash() -> str:
    """Returns a hash of the drawing code: when it changes, plots are drawn again."""
    files = (Path(__file__).parent / name for name in _CODE)
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
