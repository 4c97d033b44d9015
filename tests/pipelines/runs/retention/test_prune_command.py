import json

from typer.testing import CliRunner

from pipelines.cli.app import app


def test_it_lists_what_would_go_and_removes_nothing(root):
    first = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    arguments = ["prune", "--root", str(root.path), "--artifacts", "1", "--dry-run"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    *shown, last = [line.split("  (")[0].split() for line in result.stdout.splitlines()]
    assert [path.rpartition("/")[0] for *_, path in shown] == [
        *(f"artifacts/{name}" for name in ("Evaluator", "Trainer", "StatisticsGen", "CsvExampleGen")),
        "data",
    ]
    assert shown[-1][:2] == ["4", "bytes"]
    assert " ".join(last).startswith("would remove 5 files and folders, ")
    assert root.has(first) == root.ALL


def test_as_json_it_says_what_went_and_why(root):
    first = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    step = root.folder(first, "evaluation").parent
    size = sum(file.stat().st_size for file in step.rglob("*") if file.is_file())
    arguments = ["prune", "--root", str(root.path), "--artifacts", "1", "--json"]
    result = CliRunner().invoke(app, arguments)
    said = json.loads(result.stdout)
    assert (said["root"], said["dry_run"]) == (str(root.path), False)
    assert said["bytes"] == sum(removal["bytes"] for removal in said["removed"])
    reason = "not used by the newest 1 runs whose artifacts are kept"
    assert said["removed"][0] == {"kind": "step", "path": str(step), "reason": reason, "bytes": size}
    assert root.has(first) == set()
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["removed"] == []


def test_without_rules_or_runs_it_exits_with_2(root, tmp_path):
    root.add_run(90)
    (tmp_path / "empty").mkdir()
    for place, said in ((root.path, "--artifacts 5"), (tmp_path / "empty", "There are no runs")):
        result = CliRunner().invoke(app, ["prune", "--root", str(place)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
