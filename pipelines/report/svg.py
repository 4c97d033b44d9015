"""Makes an SVG of matplotlib's fit to stand in a page: its colors are the page's, its ids are its own.

Matplotlib writes a color into each element. Those of `Color` become classes here, which the page's style
gives the colors of the light or the dark theme. No style attribute is left, which a strict Content Security
Policy would forbid; text stays text, in the page's font.
"""

import re
import xml.etree.ElementTree as ET
from enum import Enum

_REFERENCE = re.compile(r"#([A-Za-z][\w.-]*)")
_NUMBER = re.compile(r"-?\d+\.\d+")
_DECIMALS = 1


class Color(str, Enum):
    """The colors of a plot. The values are what matplotlib is given in place of the theme's."""

    INK = "#000001"
    MUTED = "#000002"
    LINE = "#000003"
    MODEL = "#000004"
    BASELINE = "#000005"
    PANEL = "#000006"

    @property
    def css(self) -> str:
        """The last part of the classes, such as `ink` of `f-ink` (fill) and `s-ink` (stroke)."""
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
"""Properties that are attributes of SVG as well."""


def for_page(text: str, name: str, title: str, description: str) -> str:
    """Returns an SVG that can stand in HTML, with a name and a description for screen readers.

    Args:
      text: As matplotlib wrote it, in the colors of `Color`.
      name: Unique in the page; letters, digits and hyphens.
      title: What it shows.
      description: What is to be seen in it.

    Raises:
      ValueError: It has another color: it could not be read in both themes.
    """
    root = ET.fromstring(text)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _drop(root)
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
        {
            "viewBox": view,
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-text",
            "class": "plot",
        },
    )
    ET.SubElement(head, "title", {"id": f"{name}-title"}).text = title
    ET.SubElement(head, "desc", {"id": f"{name}-text"}).text = description
    shell = ET.tostring(head, encoding="unicode")
    return shell.removesuffix("</svg>") + content + "</svg>"


def _drop(root: ET.Element) -> None:
    """Removes what matplotlib adds for other readers."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "metadata" or child.tag == "style":
                parent.remove(child)


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
        elif _is_left_out(local, value, element.tag):
            continue
        else:
            attributes[local] = _rounded(_REFERENCE.sub(rf"#{name}-\1", value))
    if classes:
        attributes["class"] = " ".join(classes)
    element.attrib.clear()
    element.attrib.update(attributes)
    if element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None


def _is_left_out(key: str, value: str, tag: str) -> bool:
    """Whether an attribute says nothing here: a size, which is the page's, or no rotation at all."""
    return (key in ("width", "height") and tag == "svg") or (
        key == "transform" and value.startswith("rotate(-0 ")
    )


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
    """Removes groups that say nothing, and empties."""
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
        lambda match: f"{float(match[0]):.{_DECIMALS}f}".rstrip("0").rstrip("."),
        " ".join(value.split()),
    )
