import json

from typer.testing import CliRunner

from pipelines.cli.app import app


def test_it_lists_what_would_go_and_removes_nothing(root):
    first = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    arguments = ["prune", "--root", str(root.path), "--artifacts", "1", "--dry-run"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    shown = [line.split("  (")[0].strip() for line in result.stdout.splitlines()]
    assert "4.0 kB  artifacts/Trainer/model_run/3" in shown
    assert shown[-1] == "would remove 8 files and folders, 4.8 kB"
    assert "model_run" in root.has(first)


def test_as_json_it_says_what_went_and_why(root):
    first = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    arguments = ["prune", "--root", str(root.path), "--artifacts", "1", "--json"]
    result = CliRunner().invoke(app, arguments)
    said = json.loads(result.stdout)
    assert (said["root"], said["dry_run"], said["bytes"]) == (str(root.path), False, 4_824)
    assert said["removed"][0] == {
        "kind": "artifact",
        "path": str(root.path / "artifacts/CsvExampleGen/examples/1"),
        "reason": f"run {first} is not among the newest 1 runs whose artifacts stay",
        "bytes": 500,
    }
    assert root.has(first) == set()
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["removed"] == []


def test_without_rules_or_runs_it_exits_with_2(root, tmp_path):
    root.add_run(90)
    (tmp_path / "empty").mkdir()
    for place, said in ((root.path, "--artifacts 5"), (tmp_path / "empty", "There are no runs")):
        result = CliRunner().invoke(app, ["prune", "--root", str(place)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
