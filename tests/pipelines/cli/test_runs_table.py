import io
import shutil

import pytest
from rich.console import Console

from pipelines.cli.runs_table import evaluation_lines, reason_lines, runs_json, runs_table
from pipelines.root import Root
from pipelines.root.history import read_runs
from pipelines.root.rollback import rollback
from tests.pushed_versions import serve_version


@pytest.fixture
def root(killed, tmp_path):
    """Two runs have pushed 1000 and 2000, a third one found nothing new."""
    root = Root(tmp_path / "root")
    pushed = killed.changed(status="pushed", metrics={"auc": 0.8125, "recall": None})
    compared = {"baseline_metrics": {"auc": 0.75}, "baseline_version": "1000"}
    for run_id, version, fields in (("20260101-000001", 1000, {}), ("20260101-000002", 2000, compared)):
        serve_version(root.serving, version, run_id)
        root.records.write(pushed.changed(run_id=run_id, version=str(version), **fields))
    root.records.write(killed.changed(status="unchanged", reason="as version 2000"))
    return root


def table(root):
    stream = io.StringIO()
    Console(file=stream, width=140).print(runs_table(root, read_runs(root)))
    return [line.split() for line in stream.getvalue().splitlines()]


def test_runs_say_what_serves_what_was_withdrawn_and_the_baseline(root):
    header, first, second, third = table(root)
    assert header == ["run", "started", "status", "version", "metric", "model", "baseline"]
    assert first[2:] == ["pushed", "1000", "auc", "0.8125"]
    assert second[2:] == ["pushed", "2000", "(live)", "auc", "0.8125", "0.7500", "(1000)"]
    assert third[2:] == ["unchanged"]
    rollback(root)
    _, first, second, _ = table(root)
    assert first[2:5] == ["pushed", "1000", "(live)"]
    assert second[2:5] == ["withdrawn", "2000", "(withdrawn)"]


def test_spans_have_a_column_where_there_are_any(root):
    records = read_runs(root)
    spans = tuple({"span": span, "version": 2, "num_files": 1} for span in (3, 4))
    records[1] = records[1].changed(spans=spans)
    stream = io.StringIO()
    Console(file=stream, width=160).print(runs_table(root, records))
    header, first, second, _ = (line.split() for line in stream.getvalue().splitlines())
    assert header[-1] == "spans"
    assert first[-1] == "0.8125"
    assert second[-4:] == ["(1000)", "3..4", "(version", "2)"]
    assert runs_json(root, records)[1]["spans"] == list(spans)


def test_why_the_newest_runs_pushed_nothing(root):
    records = read_runs(root)
    assert list(reason_lines(records)) == ["20260102-030405 unchanged: as version 2000"]
    long = records[2].changed(status="failed", reason="Trainer: [red] no\nspace " + "left " * 40)
    line, whole = reason_lines([*records[:2], long])
    assert whole == "whole reasons: in `runs --json`, and in the page that `report 20260102-030405` prints"
    assert line.startswith("20260102-030405 failed: Trainer: [red] no space left left")
    assert line.endswith("…")
    assert len(line) == len("20260102-030405 failed: ") + 100
    many = [records[2].changed(run_id=f"run-{number}") for number in range(7)]
    assert [line.split()[0] for line in reason_lines(many)] == [f"run-{n}" for n in range(2, 7)]
    assert list(reason_lines(records[:2])) == []


def test_runs_as_json(root):
    def found():
        listed = runs_json(root, read_runs(root))
        return [(run["status"], run["served"], run["version_state"]) for run in listed]

    assert found() == [("pushed", False, "kept"), ("pushed", True, "serving"), ("unchanged", False, None)]
    rollback(root)
    assert found()[:2] == [("pushed", True, "serving"), ("withdrawn", False, "withdrawn")]
    assert read_runs(root)[1].status == "pushed"  # how the run ended does not change
    assert runs_json(root, read_runs(root))[1]["baseline_metrics"] == {"auc": 0.75}


def test_a_version_that_was_removed_is_said_to_be(root):
    shutil.rmtree(root.serving / "1000")
    assert table(root)[1][2:5] == ["pushed", "1000", "(removed)"]


def test_both_models_are_shown_side_by_side(root):
    checks = ({"passed": False, "message": "auc is low"},)
    record = read_runs(root)[1].changed(checks=checks, not_checked=("the loss",))
    lines = list(evaluation_lines(record))
    assert lines[0].split("(")[0].split() == ["new", "model", "baseline"]
    assert "version 1000, the same examples" in lines[0]
    rows = [line.split() for line in lines[1:3]]
    assert rows == [["auc", "0.8125", "0.75"], ["recall", "not", "a", "number"]]
    assert lines[3:] == ["  ✗ auc is low", "! not checked: the loss"]
    assert "baseline" not in next(evaluation_lines(read_runs(root)[0]))
