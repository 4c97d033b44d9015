import json
from dataclasses import replace

import pytest

from pipelines.report.context import NOT_RECORDED
from pipelines.report.page import render_report
from pipelines.report.sections.origin import describe, given


@pytest.mark.more
def test_where_the_model_is_from_and_what_became_of_the_data(full):
    found = describe(full)
    assert found["files"][0]["size"] == "12.3 kB"
    assert found["lineage"]["baseline_run"] == "20260101-030405"
    assert ("trainer.train_steps", 70) in found["parameters"]
    assert found["command"] == "estimator-pipelines lineage 1770000000"
    assert json.loads(found["configuration"])["trainer"] == {"model": "auto", "train_steps": 70}
    assert found["spans"] == "3"
    (span,) = found["of_spans"]
    assert [(run["run_id"], run["version"]) for run in span["runs"]] == [
        ("20260102-030405", "1770000000"), ("20260101-030405", "1760000000"),
    ]  # fmt: skip
    assert span["left_out"] == 0
    page = render_report(full)
    assert "Runs with the same data" in page
    assert "20260102-030405 (this run)" in page


def test_many_runs_of_a_span_leave_room_for_others(full):
    others = tuple(replace(full.records[0], run_id=f"20260101-0000{n:02}") for n in range(11))
    (span,) = describe(replace(full, records=(*others, full.record)))["of_spans"]
    assert (len(span["runs"]), span["left_out"]) == (10, 2)
    assert span["runs"][0]["run_id"] == full.record.run_id


def test_what_is_not_set_or_not_recorded_is_left_out(failed):
    assert given({"a": None, "b": {"c": None, "d": [{"e": None}]}}) == {"b": {"d": [{}]}}
    found = describe(failed)
    assert (found["files_missing"], found["environment_missing"]) == (NOT_RECORDED, NOT_RECORDED)


@pytest.mark.more
def test_rows_that_were_left_out_are_named(full):
    assert "Rows left out" not in render_report(full)
    record = replace(full.record, bad_rows={"a long cell": 2, "a NUL character": 1})
    page = render_report(replace(full, record=record))
    assert "2 with a long cell; 1 with a NUL character; they are in" in page
    assert f"details/{full.record.run_id}/bad_rows.csv" in page
    assert record.summary()["bad_rows"] == {"a long cell": 2, "a NUL character": 1}
