import re
import xml.etree.ElementTree as ET

import pytest

from pipelines.report import plots

ROWS = [
    {"predicted": 0.1, "happened": 0.2, "low": 0.1, "high": 0.3},
    {"predicted": 0.6, "happened": 0.5, "low": 0.4, "high": 0.7},
]
CURVE = plots.Series("model", [(0.0, 0.0), (0.2, 0.7), (1.0, 1.0)])
HOSTILE = "a <b> & $x^2$"

PLOTS = {
    "lines": lambda text: plots.lines(
        text, [CURVE, plots.Series("baseline", CURVE.points, True)], "step", HOSTILE
    ),
    "unit_square": lambda text: plots.unit_square(text, [CURVE], "x", "y", "chance"),
    "calibration": lambda text: plots.calibration(text, ROWS, ROWS),
    "two_histograms": lambda text: plots.two_histograms(text, [[3.0, 1.0], [1.0, 5.0]], ["no", HOSTILE], "x"),
    "histogram": lambda text: plots.histogram(text, [3, 4], [-1.0, 0.0, 1.0], "x"),
    "scatter": lambda text: plots.scatter(text, [(1.0, 2.0), (3.0, 3.5)], "x", "y"),
}
TEXT = plots.PlotText("one", HOSTILE, "d")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", PLOTS)
def test_a_plot_has_a_name_text_and_colors_of_the_theme_alone(kind):
    plot = PLOTS[kind](TEXT)
    root = ET.fromstring(plot.svg)
    assert (plot.title, root[0].tag, root[0].text) == (HOSTILE, "title", HOSTILE)
    assert root.get("aria-labelledby") == "one-title one-text"
    assert not re.search(r"#[0-9a-fA-F]{6}|style=", plot.svg)
    assert len(root.findall(".//text")) >= 4  # labels and ticks are text
    ids = re.findall(r' id="([^"]+)"', plot.svg)
    assert len(ids) == len(set(ids))
    assert all(ident.startswith("one-") for ident in ids)
    references = re.findall(r'(?:href="|url\()#([^")]+)', plot.svg)
    assert set(references) <= set(ids)
    assert len(plot.svg) < 20_000


@pytest.mark.parametrize("name", ["$50K-$100K", "$a_b_c$", "日本 <b>", "one\x0btwo"])
def test_a_name_is_drawn_as_it_is_written(name):
    plot = plots.two_histograms(TEXT, [[3.0, 1.0], [1.0, 5.0]], ["no", name], name)
    texts = [element.text for element in ET.fromstring(plot.svg).iter("text")]
    assert texts.count(name.replace("\x0b", "\N{REPLACEMENT CHARACTER}")) == 2


def test_the_points_lie_where_the_numbers_say_and_the_same_plot_is_the_same_text():
    """Between the corners (0, 0) and (1, 1), the point (0.2, 0.7) is at a fifth and seven tenths."""
    root = ET.fromstring(PLOTS["unit_square"](TEXT).svg)
    curve, _ = (  # the other one is in the legend
        path
        for path in root.iter("path")
        if path.get("class") == "s-model" and path.get("d", "").count("L") == 2
    )
    numbers = [float(value) for value in re.findall(r"-?[\d.]+", curve.get("d"))]
    (x0, y0), (x1, y1), (x2, y2) = zip(numbers[::2], numbers[1::2], strict=True)
    assert (x1 - x0) / (x2 - x0) == pytest.approx(0.2, abs=0.005)
    assert (y1 - y0) / (y2 - y0) == pytest.approx(0.7, abs=0.005)
    assert y2 < y0  # up is more
    assert x2 > x0
    assert PLOTS["lines"](TEXT).svg == PLOTS["lines"](TEXT).svg


def test_no_point_of_a_calibration_lies_under_its_legend():
    everywhere = [
        {"predicted": x / 10, "happened": y / 10, "low": 0.0, "high": 1.0}
        for x in range(11)
        for y in range(11)
    ]
    root = ET.fromstring(plots.calibration(TEXT, everywhere, everywhere).svg)
    legend = [
        float(text.get("y")) for text in root.iter("text") if text.text in ("calibrated", "baseline", "model")
    ]
    points = [float(one.get("y")) for one in root.iter("use")]
    assert len(legend) == 3
    # All but the points in the legend itself: of the baseline one, of the model one with two ends of a bar.
    assert sum(y > max(legend) + 5 for y in points) == len(points) - 4
    assert len(points) > 4 * len(everywhere)
