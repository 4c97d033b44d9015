import pytest
from matplotlib import get_data_path
from PIL import ImageFont

from pipelines.report.context import Context
from pipelines.report.sections.components import describe, layout
from pipelines.root.records import ComponentRecord


def test_times_shares_and_what_was_cached(full):
    found = describe(full)
    rows = {row["name"]: row for row in found["rows"]}
    assert (found["total"], found["num_cached"], found["num_run"]) == ("1 min 16 s", 2, 5)
    assert rows["Trainer"]["bar"] == 100
    assert rows["Evaluator"]["bar"] == 25  # 15 of 60 s
    assert rows["Evaluator"]["after"] == "CsvExampleGen, ServedModel, Trainer"
    assert (rows["CsvExampleGen"]["word"], rows["ServedModel"]["word"]) == (
        "from the cache", "did not run",
    )  # fmt: skip


def test_boxes_stand_before_those_that_need_them_and_edges_end_at_them(full):
    graph = full.record.graph
    boxes = {box["name"]: box for box in layout(graph, {})["boxes"]}
    order = ["CsvExampleGen", "StatisticsGen", "ExampleValidator", "Trainer", "Evaluator"]
    assert [boxes[name]["x"] for name in order] == sorted({box["x"] for box in boxes.values()})
    assert boxes["ServedModel"]["x"] == boxes["Trainer"]["x"]  # the Evaluator needs both
    assert boxes["ServedModel"]["y"] > boxes["Trainer"]["y"]
    places = [(box["x"], box["y"]) for box in boxes.values()]
    assert len(places) == len(set(places))
    found = layout(full.record.graph, {})
    boxes = {box["name"]: box for box in found["boxes"]}
    assert len(found["edges"]) == 6
    start, end = boxes["CsvExampleGen"], boxes["StatisticsGen"]
    edge = found["edges"][0]
    middle = start["y"] + start["height"] / 2
    assert edge.startswith(f"M{start['x'] + start['width']:g} {middle:g}")
    assert edge.endswith(f"{end['x']:g} {middle:g}")
    assert max(box["x"] + box["width"] for box in boxes.values()) <= found["width"]
    assert max(box["y"] + box["height"] for box in boxes.values()) <= found["height"]


def test_a_run_without_components_has_no_section(bare):
    import dataclasses

    from pipelines.report.context import Context

    record = dataclasses.replace(bare.record, components=(), graph={})
    assert describe(Context(record, bare.root)) is None


@pytest.mark.parametrize("status", ["cached", "finished", ""])
def test_texts_fit_into_their_boxes(status):
    """Drawn in DejaVu Sans, which is wider than most fonts that a browser takes."""
    name = "ExampleValidator"
    record = {name: ComponentRecord(name, status, 5999)} if status else {}
    _check_text_fits(layout({name: ()}, record)["boxes"][0])


def _check_text_fits(box):
    for text, size in ((box["name"], 12), (box["text"], 11.5)):
        font = ImageFont.truetype(get_data_path() + "/fonts/ttf/DejaVuSans.ttf", size)
        assert font.getlength(text) + 2 * 5 <= box["width"], text


@pytest.mark.parametrize(
    ("changes", "name", "stopped"),
    [
        (
            {"status": "failed", "reason": "ExampleValidator: the data failed"},
            "ExampleValidator",
            "stopped the run",
        ),
        ({"status": "not_blessed", "reason": "auc is too low"}, "Evaluator", "not blessed"),
        ({"status": "held", "reason": "a leak?"}, "Evaluator", "held the model"),
        ({"status": "failed", "reason": "OSError: the disk is full"}, "", ""),
        ({"status": "pushed", "reason": None}, "", ""),
    ],
)
def test_the_component_that_stopped_the_run_is_marked(full, changes, name, stopped):
    components = tuple(ComponentRecord(part, "finished", 1.5) for part in ("ExampleValidator", "Evaluator"))
    graph = {"ExampleValidator": [], "Evaluator": ["ExampleValidator"]}
    record = full.record.changed(components=components, graph=graph, **changes)
    found = describe(Context(record, full.root))
    assert {row["name"]: row["stopped"] for row in found["rows"] if row["stopped"]} == (
        {name: stopped} if name else {}
    )
    marked = [(box["name"], box["text"]) for box in found["graph"]["boxes"] if box["status"] == "failed"]
    assert marked == ([(name, f"✗ {stopped}")] if name else [])
    for box in found["graph"]["boxes"]:
        _check_text_fits(box)
