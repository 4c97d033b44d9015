"""The charts of the benchmarks: the positions in the drawing."""

import re
import xml.etree.ElementTree as ET

import pytest

from benchmarks import charts

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_bars_begin_at_1_on_a_scale_of_powers():
    # Two decades on 430 units from 250: 1 is at 465, 10 at 680, 0.1 at 250.
    svg = charts.bars("Ratios", [("fast & good", 10, 5, 10, 3), ("slow", 0.1, 0.1, 0.2, None)])
    root = ET.fromstring(svg)
    bars = [(float(element.get("x")), float(element.get("width"))) for element in root.iter(f"{SVG}rect")]
    assert bars == [(465.0, 215.0), (250.0, 215.0)]
    assert [element.get("class") for element in root.iter(f"{SVG}rect")] == ["s0", "s1"]
    aims = [element.get("d") for element in root.iter(f"{SVG}path") if element.get("class") == "a"]
    assert len(aims) == 1
    assert aims[0].startswith("M567.6 ")  # 465 + 215 * log10(3)
    assert {"Ratios", "fast & good", "10x", "0.1x", "1x"} <= set(texts(svg))


def test_there_is_room_for_long_names():
    name = "a name of fifty letters, as some contestants have."
    bars = ET.fromstring(charts.bars("Ratios", [(name, 2, 1, 3, None)]))
    (label,) = (element for element in bars.iter(f"{SVG}text") if element.text == name)
    assert float(label.get("x")) >= 8 * 50
    lines = ET.fromstring(charts.lines("Growth", ("x", "y"), {name: [(1, 1), (10, 10)]}))
    (label,) = (element for element in lines.iter(f"{SVG}text") if element.text == name)
    assert float(lines.get("width")) >= float(label.get("x")) + 8 * 50


def points(svg):
    paths = [element.get("d") for element in ET.fromstring(svg).iter(f"{SVG}path")]
    return [re.findall(r"[\d.]+", path) for path in paths if "L" in path]


def test_lines_on_scales_of_powers():
    # x from 10 to 1,000 on 480 units from 70; y from 1 to 100 on 260 units up from 300.
    line = {"ours": [(10, 1), (100, 100), (1000, 10)]}
    svg = charts.lines("Growth", ("batch size", "steps a second"), line)
    assert points(svg) == [["70.0", "300.0", "310.0", "40.0", "550.0", "170.0"]]
    assert {"Growth", "batch size", "steps a second", "ours", "1,000", "100"} <= set(texts(svg))


def test_lines_on_even_scales_begin_at_0():
    # y ends a quarter above the highest: 1,000. 800 is 4/5 of 260 units up from 300.
    line = {"ours": [(50, 400), (100, 800)]}
    svg = charts.lines("Memory", ("steps", "MiB"), line, log_x=False)
    assert points(svg) == [["310.0", "196.0", "550.0", "92.0"]]


def test_bars_need_numbers_above_0():
    with pytest.raises(ValueError, match=r"A chart needs numbers above 0\. Received: \[0"):
        charts.bars("Ratios", [("nothing", 0, 0.5, 2, None)])


def test_lines_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match=r"numbers above 0\. Received: \[\]"):
        charts.lines("Growth", ("x", "y"), {"ours": []})
    with pytest.raises(ValueError, match=r"at most four lines\. Received: \['0', '1', '2', '3', '4'"):
        charts.lines("Growth", ("x", "y"), {str(number): [(1, 1)] for number in range(5)})
