import xml.etree.ElementTree as ET

import pytest

from pipelines.report.svg import Color, for_page

SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="9pt" viewBox="0 0 9 9">
 <metadata>by whom</metadata>
 <defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
 <g id="figure_1">
  <path d="M 0 0 z" style="fill: none"/>
  <defs><path id="m1" d="M 0 0 L 0 3.5678" style="stroke: #000001; stroke-width: 0.8"/></defs>
  <g clip-path="url(#c1)"><use xlink:href="#m1" x="1.23456" style="stroke: #000004"/></g>
  <text style="font-size: 10px; font-family: 'DejaVu Sans'; text-anchor: middle; fill: #000002"
   transform="rotate(-0 3 4)">a &lt; b</text>
 </g>
 <defs><clipPath id="c1"><rect width="5" height="5"/></clipPath></defs>
</svg>"""


def test_colors_become_classes_and_ids_those_of_the_plot():
    text = for_page(SVG, "roc", "The <title>", "What & why")
    root = ET.fromstring(text)
    assert root.attrib == {
        "viewBox": "0 0 9 9",
        "role": "img",
        "aria-labelledby": "roc-title roc-text",
        "class": "plot",
    }
    assert [child.tag for child in root][:2] == ["title", "desc"]
    assert root[0].text == "The <title>"
    use = root.find(".//use")
    assert use.attrib == {"href": "#roc-m1", "x": "1.2", "class": "s-model"}
    marker = root.find(".//path")  # the patch without fill is gone
    assert marker.attrib == {
        "id": "roc-m1", "d": "M 0 0 L 0 3.6", "class": "s-ink", "stroke-width": "0.8",
    }  # fmt: skip
    assert root.find(".//g").attrib == {"clip-path": "url(#roc-c1)"}
    label = root.find(".//text")
    assert label.text == "a < b"
    assert label.attrib == {"font-size": "10", "text-anchor": "middle", "class": "f-muted"}
    for part in ("style", "metadata", "figure_1", "xmlns"):
        assert part not in text


def test_a_color_that_no_theme_has_is_refused():
    with pytest.raises(ValueError, match=r"Received: stroke='#1f77b4' in 'roc'"):
        for_page(SVG.replace(Color.INK.value, "#1f77b4"), "roc", "a", "b")
