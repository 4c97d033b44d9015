import json

from pipelines.report.context import NOT_RECORDED
from pipelines.report.sections.origin import describe, given


def test_where_the_model_is_from(full):
    found = describe(full)
    assert found["files"][0]["size"] == "12.3 kB"
    assert found["lineage"]["baseline_run"] == "20260101-030405"
    assert ("trainer.train_steps", 70) in found["parameters"]
    assert found["command"] == "python -m pipelines lineage 1770000000"
    assert json.loads(found["configuration"])["trainer"] == {"model": "auto", "train_steps": 70}


def test_what_is_not_set_is_left_out():
    assert given({"a": None, "b": {"c": None, "d": [{"e": None}]}}) == {"b": {"d": [{}]}}


def test_a_run_without_files(failed):
    found = describe(failed)
    assert (found["files_missing"], found["environment_missing"]) == (NOT_RECORDED, NOT_RECORDED)
