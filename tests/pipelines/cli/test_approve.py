import dataclasses

from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.cli.run import next_steps
from pipelines.root import Root
from pipelines.root.records import HeldModel
from tests.pushed_versions import add_model


def call(*words):
    return CliRunner().invoke(app, ["approve", *map(str, words)])


def held_root(killed, tmp_path):
    root = Root(tmp_path / "root")
    add_model(root.path / "m" / "s")
    held = dataclasses.replace(
        killed, status="held", reason="a doubt", doubts=("a doubt",), held=HeldModel("m", "m/s")
    )
    root.records.write(held)
    return root, held


def test_approve_prints_the_version_alone_on_stdout(killed, tmp_path):
    root, held = held_root(killed, tmp_path)
    place = ("--root", root.path)
    result = call(held.run_id, *place, "--because", "it is right", "--by", "ann")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{root.versions.serving()}\n"
    assert result.stderr.endswith(f"version {root.versions.serving()}: approved by ann: it is right\n")
    again = call(held.run_id, *place, "--because", "once more")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "was approved by ann: it is right, as version " in again.stderr


def test_reject_pushes_nothing(killed, tmp_path):
    root, held = held_root(killed, tmp_path)
    result = call(held.run_id, "--root", root.path, "--because", "wrong", "--by", "ann", "--reject")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"run {held.run_id}: rejected by ann: wrong\n"
    assert root.versions.served() == []


def test_a_decision_needs_a_reason_and_a_root(killed, tmp_path):
    root, held = held_root(killed, tmp_path)
    assert call(held.run_id, "--root", root.path).exit_code == 2
    assert call(held.run_id, "--root", tmp_path / "none", "--because", "x").exit_code == 2
    assert root.records.read(held.run_id).decision is None


def test_a_run_on_a_terminal_ends_with_the_command_that_decides(killed, tmp_path, monkeypatch):
    root, held = held_root(killed, tmp_path)
    monkeypatch.chdir(tmp_path)
    (line,) = next_steps(held, root, "estimator-pipelines")
    assert line.startswith("decide:              ")
    assert line.endswith(f"estimator-pipelines approve {held.run_id} --root root --because TEXT")
