import sys
from pathlib import Path

import pytest

from pipelines.cli.run import next_steps
from pipelines.root import Root


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "root")


@pytest.fixture
def pushed(killed, tmp_path, monkeypatch):
    """The record of a run in `tmp_path`, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    report = str(tmp_path / "root" / "runs" / "a run.html")
    return killed.changed(status="pushed", version="5", report=report)


@pytest.fixture
def is_active(monkeypatch):
    """The environment of this Python is active."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))


@pytest.mark.usefixtures("is_active")
def test_there_is_a_line_for_the_report_for_predictions_and_for_the_server(pushed, root):
    assert next_steps(pushed, root, "python -m pipelines") == [
        "look at the report:  'root/runs/a run.html'",
        "get predictions:     python -m pipelines predict --root root --data NEW.csv",
        "serve the model:     python -m pipelines serve --root root",
    ]


def test_a_program_that_the_shell_does_not_find_is_called_by_its_path(pushed, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    lines = next_steps(pushed, Root(Path("/elsewhere")), "python -m pipelines")
    own = Path(sys.executable).parent / "python"
    assert lines[2] == f"serve the model:     {own} -m pipelines serve --root /elsewhere"


def test_the_lines_of_a_run_that_serves_nothing_or_read_no_csv(pushed, root):
    record = pushed.changed(status="not_blessed", version=None)
    lines = next_steps(record, root, "python -m pipelines")
    assert [line.partition(":")[0] for line in lines] == ["look at the report"]
    assert len(next_steps(record.changed(serving_version="4"), root, "python -m pipelines")) == 3
    record = pushed.changed(config={"pipeline": {"file": "a.py"}})
    lines = next_steps(record, root, "python -m pipelines")
    assert [line.partition(":")[0] for line in lines] == ["look at the report", "serve the model"]
    files = ({"path": "/data/trips.csv", "bytes": 0, "sha256": ""},)
    lines = next_steps(record.changed(data_files=files), root, "program")
    assert lines[1].endswith("predict --root root --data NEW.csv")
