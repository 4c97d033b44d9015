import ast
import dataclasses
import json
import shlex

import pytest

from pipelines.report.page import render_report
from pipelines.report.sections.serving import describe, example_row, requests, serve_commands
from pipelines.report.words import NOTHING
from pipelines.root import Root

from ..conftest import HOSTILE, RTL  # noqa: TID252
from ..html_checks import check_page  # noqa: TID252


def body_of(request):
    words = shlex.split(request["text"])  # as a shell reads it
    return words[2], json.loads(words[words.index("-d") + 1])


def test_the_row_has_typical_values_without_label_and_marks_of_missing_values(full):
    assert example_row(full) == {HOSTILE: 2.25, RTL: HOSTILE}
    (_, city, _) = full.details["statistics"]["columns"]
    split = {"missing": 0, "top": [["?", 9.0], ["on request", 8.0], ["$4.50", 7.0], ["$1", 3.0]]}
    price = {**city, "splits": {"train": split}}
    columns = {**full.details, "statistics": {**full.details["statistics"], "columns": [price]}}
    for kind, cell in ((None, "on request"), ({"decimal": ".", "currency": "USD"}, "$4.50")):
        rows = ({"name": RTL, "use": "a feature", "number_format": kind},)
        record = dataclasses.replace(full.record, columns=rows)
        context = dataclasses.replace(full, record=record, details=columns)
        assert example_row(context) == {RTL: cell}


@pytest.mark.parametrize(
    ("format_of_cells", "quantity", "median", "cells", "typical"),
    [
        ({"number_format": {"currency": "EUR", "decimal": ","}}, "numbers", 390.31,
         ["78,18 €", "1.390,31 €", "n/a", "389 €"], "389 €"),
        ({"number_format": {"decimal": ","}}, "numbers", 0.1, ["0 %", "12,5 %", "10 %"], "10 %"),
        ({"number_format": {"scale": "time"}}, "numbers", 12_000, ["0h 59min", "3h 20min"], "3h 20min"),
        # 2 January 1971 is day 366.
        ({"date_format": "day-first"}, "days", 366.0, ["1.1.1980", "3.1.1971", "1.1.1970"], "3.1.1971"),
    ],
)  # fmt: skip
def test_a_typical_cell_is_near_the_median(full, format_of_cells, quantity, median, cells, typical):
    split = {"top": [[cell, 1.0] for cell in cells], "parsed": {"quantity": quantity, "median": median}}
    column = {"name": "c", "type": "text", "splits": {"train": split}}
    record = full.record.changed(columns=({"name": "c", "use": "number", **format_of_cells},))
    context = dataclasses.replace(full, record=record, details={"statistics": {"columns": [column]}})
    assert example_row(context) == {"c": typical}


def test_requests_survive_the_shell_and_python(full):
    first = describe(full)["requests"][0]
    url, body = body_of(first)
    assert url.endswith(":classify")
    assert body == {"examples": [{HOSTILE: 2.25, RTL: HOSTILE}]}
    second = describe(full)["requests"][1]
    program = second["text"].partition("<<'END'\n")[2].partition("\nEND\n")[0]
    tree = ast.parse(program)
    row = next(node for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(row.value) == {HOSTILE: 2.25, RTL: HOSTILE}
    assert "'signature_name': 'predict'" in program


def test_a_model_with_an_input_for_each_column():
    signature = {
        "name": "serving_default", "method": "predict", "outputs": [],
        "inputs": [{"name": "x", "type": "float32", "shape": [None, 1]},
                   {"name": "word", "type": "string", "shape": [None]},
                   {"name": "new", "type": "int64", "shape": None}],
    }  # fmt: skip
    (request,) = requests("my trips", [signature], {"x": 2.5, "word": "it's"})
    url, body = body_of(request)
    assert url == "http://localhost:8501/v1/models/my_trips:predict"
    assert body["instances"] == [{"x": [2.5], "word": "it's", "new": 0}]


def test_the_signature_of_rows_is_asked_before_that_of_examples():
    column = {"name": "x", "type": "float32", "shape": [None]}
    examples = {"name": "examples", "type": "string", "shape": [None]}
    signatures = [
        {"name": name, "method": "predict", "outputs": [], "inputs": [tensor]}
        for name, tensor in (("predict", examples), ("serving_rows", column))
    ]
    (request,) = requests("trips", signatures, {"x": 2.5})
    body = {"signature_name": "serving_rows", "instances": [{"x": 2.5}]}
    assert body_of(request)[1] == body


def test_the_commands_that_serve_quote_their_paths(tmp_path):
    text = serve_commands("my trips", Root(tmp_path / "a b"))
    own, image = (shlex.split(part) for part in text.split("\n\n"))
    assert own == ["estimator-pipelines", "serve", "--root", str(tmp_path / "a b")]
    assert f"{tmp_path / 'a b' / 'serving'}:/models/my_trips" in image


@pytest.mark.more
def test_a_model_that_was_not_pushed_is_not_served(full):
    for changes, is_served in (
        ({}, True),
        ({"status": "unchanged", "version": None}, True),
        ({"status": "not_blessed", "version": None}, False),
        ({"status": "held", "version": None}, False),
    ):
        record = dataclasses.replace(full.record, **changes)
        context = dataclasses.replace(full, record=record)
        assert (describe(context)["serve"] is not None) == is_served, changes
        text = check_page(render_report(context)).root.text
        assert ("This model was not pushed, so no server has it" in text) != is_served


def test_signatures_and_what_the_serving_check_measured(full, bare, failed):
    found = describe(full)
    assert found["size"] == "1.2 MB"
    assert found["signatures"][0]["inputs"] == [{"name": "inputs", "type": "string", "shape": "[?]"}]
    assert found["signatures"][1]["outputs"][0]["shape"] == "any shape"
    assert describe(bare)["missing"]
    assert describe(failed) is None
    check = describe(full)["check"]
    assert (check["load"], check["memory"]) == ("0.8 s", "81.5 MB")
    predict, empty = check["signatures"]
    assert (predict["rows"], predict["p50"], predict["p99"]) == ("300", "1.25", "2.5")
    assert predict["compared"] == f"{HOSTILE}, logits"
    assert predict["different"] == (f"{HOSTILE} in 7 of 300 rows, such as [{HOSTILE!r}] instead of [0.5]")
    assert (empty["p50"], empty["different"], empty["compared"]) == (NOTHING, "none", NOTHING)
    not_asked = {**full.details["serving_check"], "rows": 0}
    for found in (None, not_asked):
        details = {**full.details, "serving_check": found}
        assert describe(dataclasses.replace(full, details=details))["check"] is None
