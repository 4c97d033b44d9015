import json
import os
import pathlib
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).parents[2]


def test_help_needs_no_heavy_import():
    heavy = ("apache_beam", "pyarrow", "pydantic", "tensorflow", "tfx")
    script = f"import sys, pipelines.cli; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "--root", "root"],
        ["report", "--root", "root"],
        ["rollback", "--root", "root"],
        ["schema", "show", "--root", "root"],
        ["plan", "--data", "trips.csv", "--label", "y"],
        ["run", "--data", "trips.csv", "--label", "none"],  # is refused
    ],
    ids=["runs", "report", "rollback", "schema show", "plan", "run"],
)
def test_what_trains_nothing_needs_no_tensorflow(tmp_path, arguments):
    (tmp_path / "trips.csv").write_text("a,b,y\n" + ROWS)
    script = f"""
import os, sys
sys.argv[1:] = {arguments}
heavy = ("apache_beam", "estimator_core", "tensorflow", "tfx")
exit_process = os._exit
def end(code):
    print("\\nimported:", [name for name in heavy if name in sys.modules], flush=True)
    exit_process(code)
os._exit = end
import pipelines.__main__
try:
    pipelines.__main__.main()
except SystemExit as error:
    end(error.code or 0)
"""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == (0 if arguments[0] in ("runs", "plan") else 2), result.stderr
    assert result.stdout.splitlines()[-1] == "imported: []"


ROWS = "".join(f"{number},{number % 7}.5,{'pq'[number % 2]}\n" for number in range(40))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b,c\n" + ROWS, ["line 1", "no label column 'y'", "'a', 'b', 'c'"]),
        ("a,b,y\n" + ROWS + "1,2\n", ["line 42", "no value for column 'y'"]),
        ("", ["is empty"]),
        ("a,b,y\n" + ROWS.replace("q", "p"), ["column 'y' (lines 2 to 41)", "every label is 'p'"]),
        (None, ["no *.csv file"]),
    ],
    ids=["no label column", "ragged row", "empty file", "one class", "no csv"],
)
def test_bad_data_exit_with_2_one_message_and_no_root(warm_command, tmp_path, text, parts):
    data = tmp_path / "data"
    data.mkdir()
    if text is not None:
        (data / "trips.csv").write_text(text)
    root = tmp_path / "root"
    result = warm_command("run", "--data", data, "--label", "y", "--root", root)
    assert result.returncode == 2
    assert not root.exists()
    line = json.loads(result.stdout.splitlines()[-1])
    assert (line["status"], line["run_id"], line["version"]) == ("failed", None, None)
    messages = [text for text in result.stderr.splitlines() if text.startswith("✗")]
    assert messages == [f"✗ {line['reason']}"]
    assert line["error"] == "bad_input"
    assert str(data) in line["reason"]
    for part in parts:
        assert part in line["reason"]


def test_a_root_that_is_taken_is_told_apart(warm_command, data, tmp_path):
    from pipelines.run_lock import locked

    with locked(tmp_path / "root"):
        result = warm_command("run", "--data", data, "--label", "y", "--root", tmp_path / "root")
    assert result.returncode == 2
    line = json.loads(result.stdout.splitlines()[-1])
    assert line["error"] == "root_busy"
    assert "Another run is going on" in line["reason"]


def test_bad_configuration_exits_with_2(warm_command, tmp_path):
    data = tmp_path / "trips.csv"
    data.write_text("a,b,y\n" + ROWS)
    for arguments, part in (
        (["--runner", "beam"], "Set beam.direct.workers"),
        (["--set", "beam.runner=flink"], "set beam.flink.master"),
        (["--runner", "cluster"], "Available runners: kubeflow, beam, local"),
        (["--runner", "kubeflow"], "`python -m pipelines submit"),
        (["--local"], "--local has a meaning with --runner kubeflow only"),
        (["--image", "mine:3"], "--image has a meaning with --runner kubeflow only"),
        (["--param", "a=1"], "--param has a meaning with --runner kubeflow only"),
        (["--runner", "kubeflow", "--local", "--set", "name=A_B"], "Set kubeflow.name"),
        (["--set", "trainer.train_step=5"], "Did you mean train_steps"),
        (["--set", 'evaluator.metrics=["acu"]'], "Did you mean 'auc'"),
        (["--set", 'evaluator.slices=[["z"]]'], "no column 'z'"),
        (["--set", "module.path=no_such_module"], "no_such_module cannot be imported"),
    ):
        result = warm_command(
            "run", "--data", data, "--label", "y", "--root", tmp_path / "root", *arguments
        )
        assert result.returncode == 2, arguments
        assert part in json.loads(result.stdout.splitlines()[-1])["reason"]
    assert not (tmp_path / "root").exists()


def test_a_module_that_exits_as_it_is_imported_is_refused(warm_command, tmp_path):
    data, module = tmp_path / "trips.csv", tmp_path / "quits.py"
    data.write_text("a,b,y\n" + ROWS)
    module.write_text("import sys\nsys.exit(0)\n")
    arguments = ("--data", data, "--label", "y", "--root", tmp_path / "root")
    result = warm_command("run", *arguments, "--set", f"module.file={module}")
    assert result.returncode == 2
    line = json.loads(result.stdout.splitlines()[-1])
    assert line["status"] == "failed"
    assert "quits.py cannot be imported: SystemExit: 0" in line["reason"]


def test_commands_on_an_empty_root(warm_command, tmp_path):
    assert json.loads(warm_command("runs", "--json", "--root", tmp_path).stdout) == []
    result = warm_command("rollback", "--root", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "no earlier version" in result.stderr
    result = warm_command("report", "--root", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "no runs" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_resume_without_an_unfinished_run_or_configuration(warm_command, tmp_path):
    result = warm_command("run", "--resume", "--root", tmp_path / "root")
    assert result.returncode == 2
    assert "data.path is missing" in json.loads(result.stdout)["reason"]


def test_plan_prints_the_columns_and_writes_a_configuration(warm_command, tmp_path):
    data, target = tmp_path / "trips.csv", tmp_path / "plan.toml"
    data.write_text("a,b,y\n" + ROWS)
    result = warm_command("plan", "--data", data, "--label", "y", "-o", target)
    assert result.returncode == 0
    assert "column  taken for" in result.stdout
    assert "not used: numbers the rows" in result.stdout
    assert '"b" = "number"  # number' in target.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.toml", "trips.csv"]
    again = warm_command("plan", "--config", target, "--set", "columns.b=date")
    assert again.returncode == 2
    assert '[columns] b = "date": no format fits all 40 cells' in again.stderr
