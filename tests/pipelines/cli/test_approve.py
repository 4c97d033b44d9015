import pytest

from pipelines.cli.run import next_steps
from pipelines.root import Root
from pipelines.root.records import HeldModel
from tests.pipelines.cli.invocation import invoke
from tests.pushed_versions import add_model


@pytest.fixture
def root(killed, tmp_path):
    """The root of a run whose model is held."""
    root = Root(tmp_path / "root")
    add_model(root.path / "m" / "s")
    held = {"reason": "a doubt", "doubts": ("a doubt",), "held": HeldModel("m", "m/s")}
    root.records.write(killed.changed(status="held", **held))
    return root


@pytest.fixture
def approve(root, killed):
    """Returns a function that decides on the model."""
    return lambda *words, **options: invoke("approve", killed.run_id, "--root", root.path, *words, **options)


def test_approve_prints_the_version_alone_on_stdout(approve, root):
    result = approve("--because", "it is right", "--by", "ann")
    assert result.stdout == f"{root.versions.serving()}\n"
    assert result.stderr.endswith(f"version {root.versions.serving()}: approved by ann: it is right\n")
    again = approve("--because", "once more", code=2)
    assert again.stdout == ""
    assert "was approved by ann: it is right, as version " in again.stderr


def test_reject_pushes_nothing(approve, root, killed):
    result = approve("--because", "wrong", "--by", "ann", "--reject")
    assert (result.stdout, result.stderr) == ("", f"run {killed.run_id}: rejected by ann: wrong\n")
    assert root.versions.served() == []


def test_a_decision_needs_a_reason_and_a_root(approve, root, killed, tmp_path):
    approve(code=2)
    approve("--because", "x", "--root", tmp_path / "none", code=2)
    assert root.records.read(killed.run_id).decision is None


def test_a_run_on_a_terminal_ends_with_the_command_that_decides(root, killed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (line,) = next_steps(root.records.read(killed.run_id), root, "estimator-pipelines")
    assert line.startswith("decide:              ")
    assert line.endswith(f"estimator-pipelines approve {killed.run_id} --root root --because TEXT")
