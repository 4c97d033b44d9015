"""Adapts matplotlib's SVG to a page: it uses the page's colors, and its ids are unique.

Matplotlib writes a color into each element. Here, those of `Color` become classes; the page's style sets
their colors for the light and the dark theme. No style attribute is left, since a strict Content Security
Policy forbids them; text stays text, in the page's font.
"""

import re
import xml.etree.ElementTree as ET
from enum import Enum

_REFERENCE = re.compile(r"#([A-Za-z][\w.-]*)")
_NUMBER = re.compile(r"-?\d+\.\d+")
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_DECIMALS = 1


class Color(str, Enum):
    """Colors of a plot. The values are the placeholders that matplotlib draws with."""

    INK = "#000001"
    MUTED = "#000002"
    LINE = "#000003"
    MODEL = "#000004"
    BASELINE = "#000005"
    PANEL = "#000006"

    @property
    def css(self) -> str:
        """Last part of the classes, such as `ink` of `f-ink` (fill) and `s-ink` (stroke)."""
        return self.name.lower()


_CLASSES = {color.value: color.css for color in Color}
_KEPT = (
    "stroke-width",
    "stroke-dasharray",
    "stroke-linecap",
    "stroke-linejoin",
    "opacity",
    "fill-opacity",
    "stroke-opacity",
    "font-size",
    "font-weight",
    "text-anchor",
)
"""CSS properties that are also attributes of SVG."""


def for_page(text: str, name: str, title: str, description: str) -> str:
    """Returns an SVG to embed in HTML, with a name and a description for screen readers.

    `name`: name of the plot, unique in the page; letters, digits and hyphens.
    """
    root = ET.fromstring(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    used = {
        match
        for element in root.iter()
        for key, value in element.attrib.items()
        if key != "id"
        for match in _REFERENCE.findall(value)
    }
    for element in list(root.iter()):
        _convert(element, name, used)
    _flatten(root)
    view = root.get("viewBox", "")
    content = "".join(ET.tostring(child, encoding="unicode") for child in root)
    head = ET.Element(
        "svg",
        {"viewBox": view, "role": "img", "aria-labelledby": f"{name}-title {name}-text", "class": "plot"},
    )
    ET.SubElement(head, "title", {"id": f"{name}-title"}).text = title
    ET.SubElement(head, "desc", {"id": f"{name}-text"}).text = description
    shell = ET.tostring(head, encoding="unicode")
    return shell.removesuffix("</svg>") + content + "</svg>"


def _convert(element: ET.Element, name: str, used: set[str]) -> None:
    attributes: dict[str, str] = {}
    classes: list[str] = []
    for key, value in element.attrib.items():
        local = key.rpartition("}")[2]
        if local == "id":
            if value in used:
                attributes["id"] = f"{name}-{value}"
        elif local == "style":
            _add_style(value, attributes, classes, name)
        elif local in ("width", "height") and element.tag == "svg":
            continue  # the page sets the size
        elif local == "transform" and value.startswith("rotate(-0 "):
            continue  # it does nothing
        else:
            attributes[local] = _rounded(_REFERENCE.sub(rf"#{name}-\1", value))
    if classes:
        attributes["class"] = " ".join(classes)
    element.attrib.clear()
    element.attrib.update(attributes)
    if element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None


def _add_style(style: str, attributes: dict[str, str], classes: list[str], name: str) -> None:
    for part in style.split(";"):
        key, _, value = (piece.strip() for piece in part.partition(":"))
        if key in ("fill", "stroke"):
            if value.startswith("url(") or value == "none":
                attributes[key] = value
            elif value in _CLASSES:
                classes.append(f"{key[0]}-{_CLASSES[value]}")
            else:
                raise ValueError(
                    f"A plot is drawn in the colors of `Color`. Received: {key}={value!r} in {name!r}"
                )
        elif key in _KEPT:
            attributes[key] = _rounded(value.removesuffix("px"))


def _flatten(element: ET.Element) -> None:
    """Removes groups without attributes, and empty elements."""
    children: list[ET.Element] = []
    for child in list(element):
        _flatten(child)
        if child.tag in ("g", "defs") and not len(child):
            continue
        if child.tag == "g" and not child.attrib:
            children.extend(child)
        elif child.tag == "path" and child.get("fill") == "none" and "class" not in child.attrib:
            continue  # a patch without fill and stroke
        else:
            children.append(child)
    for child in list(element):
        element.remove(child)
    element.extend(children)


def _rounded(value: str) -> str:
    return _NUMBER.sub(
        lambda match: f"{float(match[0]):.{_DECIMALS}f}".rstrip("0").rstrip("."), " ".join(value.split())
    )
