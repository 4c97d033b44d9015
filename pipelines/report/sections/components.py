"""Section of the components: their graph, their times, and their use of the cache."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.root.records import ComponentRecord

_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _EDGE = 116, 46, 15, 18, 4
_MARKS = {"finished": "✓", "cached": "=", "failed": "✗", "": "·"}
_WORDS = {"finished": "ran", "cached": "from the cache", "failed": "failed", "": "did not run"}
_SHORT = _WORDS | {"cached": "cached"}  # has room in a box


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the rows of the table and the graph; None for a run without components."""
    record = context.record
    if not record.components and not record.graph:
        return None
    by_name = {component.name: component for component in record.components}
    names = list(dict.fromkeys((*by_name, *record.graph)))
    total = sum(component.elapsed_secs for component in record.components) or 1.0
    longest = max((component.elapsed_secs for component in record.components), default=0.0) or 1.0
    stopped = _WORDS["failed"]
    if record.stopped_by and by_name[record.stopped_by].status != "failed":
        others = {"not_blessed": "not blessed", "held": "held the model"}
        stopped = others.get(record.status, "stopped the run")
    rows = []
    for name in names:
        component = by_name.get(name)
        elapsed = component.elapsed_secs if component else 0.0
        status = component.status if component else ""
        rows.append(
            {
                "name": name,
                "status": status,
                "mark": _MARKS[status],
                "word": _WORDS[status],
                "stopped": stopped if name == record.stopped_by else "",
                "time": words.seconds(elapsed) if component else words.NOTHING,
                "share": elapsed / total,
                "bar": 100 * elapsed / longest,
                "why": component.reason if component else "",
                "after": ", ".join(record.graph.get(name, ())) or words.NOTHING,
            }
        )
    return {
        "rows": rows,
        "total": words.seconds(total) if record.components else words.NOTHING,
        "num_cached": sum(component.status == "cached" for component in record.components),
        "num_run": len(record.components),
        "graph": layout(record.graph, by_name, record.stopped_by, stopped) if record.graph else None,
    }


def layout(
    graph: Mapping[str, Sequence[str]],
    components: Mapping[str, ComponentRecord],
    stopped_by: str = "",
    stopped: str = "",
) -> dict[str, Any]:
    """Places boxes and edges; each box is in the column before the first box that depends on it.

    `stopped_by`: marked component, which stopped the run; `stopped` is the text in its box.
    """
    columns = _columns(graph)
    rows: dict[int, int] = {}
    boxes: dict[str, dict[str, Any]] = {}
    busiest = {name: len(graph[name]) for name in graph}
    for name in sorted(graph, key=lambda other: (columns[other], -busiest[other], other)):
        column = columns[name]
        row = rows.get(column, 0)
        rows[column] = row + 1
        component = components.get(name)
        status = component.status if component else ""
        boxes[name] = {
            "name": name,
            "x": _EDGE + column * (_BOX_WIDTH + _GAP_X),
            "y": _EDGE + row * (_BOX_HEIGHT + _GAP_Y),
            "width": _BOX_WIDTH,
            "height": _BOX_HEIGHT,
            "status": "failed" if name == stopped_by else status or "waiting",
            "text": f"✗ {stopped}"
            if name == stopped_by
            else f"{_MARKS[status]} "
            + (words.seconds(component.elapsed_secs) if component and status != "cached" else _SHORT[status]),
        }
    edges = []
    for name, upstream in graph.items():
        for other in upstream:
            if other in boxes:
                edges.append(_edge(boxes[other], boxes[name]))
    return {
        "boxes": list(boxes.values()),
        "edges": edges,
        "width": 2 * _EDGE + (max(columns.values()) + 1) * (_BOX_WIDTH + _GAP_X) - _GAP_X,
        "height": 2 * _EDGE + max(rows.values()) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y,
    }


def _columns(graph: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Returns the column of each component: the last one before those that depend on it."""
    needed_by: dict[str, list[str]] = {name: [] for name in graph}
    for name, upstream in graph.items():
        for other in upstream:
            needed_by.setdefault(other, []).append(name)
    from_end: dict[str, int] = {}

    def distance(name: str) -> int:
        if name not in from_end:
            from_end[name] = 0  # a component that waits for itself ends here
            from_end[name] = max(
                (distance(dependent) + 1 for dependent in needed_by.get(name, ())), default=0
            )
        return from_end[name]

    last = max((distance(name) for name in graph), default=0)
    return {name: last - distance(name) for name in graph}


def _edge(start: Mapping[str, Any], end: Mapping[str, Any]) -> str:
    """Returns the path from the right of a box to the left of another."""
    x1, y1 = start["x"] + start["width"], start["y"] + start["height"] / 2
    x2, y2 = end["x"], end["y"] + end["height"] / 2
    if x2 - x1 <= _GAP_X or y1 != y2:
        middle = x2 - _GAP_X / 2
        return f"M{x1:g} {y1:g}L{x2 - _GAP_X:g} {y1:g}C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
    # Along a row, the path passes below the boxes between.
    low = start["y"] + start["height"] + 9
    return (
        f"M{x1:g} {y1:g}C{x1 + 16:g} {y1:g} {x1 + 8:g} {low:g} {x1 + 30:g} {low:g}"
        f"L{x2 - 30:g} {low:g}C{x2 - 8:g} {low:g} {x2 - 16:g} {y2:g} {x2:g} {y2:g}"
    )
