import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tomllib
import typer

from pipelines.cli.app import app
from pipelines.config.load import load_config
from pipelines.report.files import write_pages
from pipelines.root import Root
from pipelines.root.records import RunRecord
from tests.circles import in_circles
from tests.pipelines.cli.invocation import invoke

PROJECT = pathlib.Path(__file__).parents[3]


HEAVY = (
    "apache_beam", "estimator_core", "kfp", "ml_metadata", "pandas", "tensorflow", "tfx",
    "google.api_core",  # of all of google.cloud, which is a name in each environment
)  # fmt: skip

HELP_NEEDS_NOT = (*HEAVY, "numpy", "pipelines.config.pipeline_config", "pyarrow")


def imported_by(folder, arguments, heavy):
    """Runs a command in a process of its own, and returns it and those of the modules that it imports."""
    script = f"""
import os, sys
sys.argv[1:] = {arguments}
exit_process = os._exit
def end(code):
    print("\\nimported:", *[name for name in {heavy} if name in sys.modules], flush=True)
    exit_process(code)
os._exit = end
import pipelines.__main__
try:
    pipelines.__main__.main()
except SystemExit as error:
    end(error.code or 0)
"""
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    word, _, names = result.stdout.splitlines()[-1].partition(":")
    assert word == "imported"
    return result, names.split()


def commands(group=None, prefix=()):
    """Yields the names of all commands, as they are registered."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        yield (*prefix, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*prefix, name))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "command",
    in_circles([(), *commands()], first=[(), ("run",), ("predict",), ("serve",), ("schedule", "create")]),
    ids=" ".join,
)
def test_help_needs_no_heavy_import(tmp_path, command):
    result, imported = imported_by(tmp_path, [*command, "--help"], HELP_NEEDS_NOT)
    assert (result.returncode, imported) == (0, []), result.stderr
    assert "Usage: python -m pipelines" in result.stdout
    assert "<bool>" not in result.stdout


def test_each_command_has_a_panel_and_the_version_is_that_of_the_project(warm_command):
    shown = warm_command("--help").stdout
    assert warm_command().stdout.strip() == shown.strip()
    panels = ["Options", "From data to a model", "Predictions", "Earlier runs", "Kubeflow"]
    assert re.findall(r"╭─ (.+?) ─", shown) == panels
    with (PROJECT / "pyproject.toml").open("rb") as file:
        assert (
            warm_command("--version").stdout
            == f"estimator-pipelines {tomllib.load(file)['project']['version']}\n"
        )


def test_a_help_page_joins_its_lines_and_has_no_earlier_names(warm_command):
    shown = warm_command("submit", "--help").stdout
    assert re.findall(r"╭─ (.+?) ─", shown) == ["Options", "Kubeflow"]
    assert "the run succeeded), 2 bad input, 1 any other failure." in shown
    assert "--host" not in shown
    assert "--cron" not in shown


def test_the_check_of_imports_sees_them(tmp_path):
    _, imported = imported_by(tmp_path, ["--help"], ("typer", "json", "tensorflow"))
    assert imported == ["typer", "json"]


def recorded(root, **changes):
    """Writes the record of a run that has pushed."""
    fields = {
        "run_id": "20260101-000000", "name": "a", "status": "pushed", "log": "", "version": "7",
        "started": "2026-01-01T00:00:00+00:00", "config": {"data": {"path": "d.csv"}},
        "data_fingerprint": "", "metrics": {"auc": 0.75},
    }  # fmt: skip
    record = RunRecord(**{**fields, **changes})
    Root(root).records.write(record)
    return record


def root_with_two_versions(folder):
    """Makes a root with a run, its report, its schema, and two versions."""
    for version in ("7", "12"):
        (folder / "serving" / version / "assets.extra").mkdir(parents=True)
        (folder / "serving" / version / "saved_model.pb").touch()
        (folder / "serving" / version / "assets.extra" / "push.json").write_text(
            json.dumps({"pipeline_run_id": "20260101-000000", "model": "../model"})
        )
    config = load_config(data="trips.csv", label="y").model_dump(mode="json")
    record = recorded(folder, name="trips", config=config, version="12")
    write_pages(Root(folder), record, folder / "runs" / "20260101-000000.html")
    (folder / "schema").mkdir()
    (folder / "schema" / "schema.pbtxt").write_text('feature { name: "a" type: INT }')


def test_behind_a_rollback_the_index_says_what_serves(tmp_path):
    root_with_two_versions(tmp_path / "root")
    index = tmp_path / "root" / "runs" / "index.html"
    assert "Version <strong>12</strong>" in index.read_text()
    assert invoke("rollback", "--root", tmp_path / "root").stdout == "7\n"
    assert "Version <strong>7</strong>" in index.read_text()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("command", "said", "more"),
    [
        ("runs", "20260101-000000", ()),
        ("runs --json", '"version": "12"', ()),
        ("report", "20260101-000000.html", ()),
        ("lineage", "version 12 (serving)", ("numpy", "matplotlib", "jinja2")),
        ("rollback", "7", ()),
        ("schema show", "schema.pbtxt", ()),
    ],
)
def test_what_reads_a_root_needs_no_heavy_import(tmp_path, command, said, more):
    root_with_two_versions(tmp_path / "root")
    result, imported = imported_by(tmp_path, [*command.split(), "--root", "root"], (*HEAVY, *more))
    assert (result.returncode, imported) == (0, []), result.stderr
    assert said in result.stdout


@pytest.mark.more
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("runs --root root", 2),  # which is not there
        ("report --root root", 2),
        ("lineage --root root", 2),
        ("rollback --root root", 2),
        ("schema show --root root", 2),
        ("plan --data trips.csv --label y", 0),
        ("run --data trips.csv --label none", 2),
    ],
)
def test_what_trains_nothing_needs_no_tensorflow(tmp_path, command, code):
    (tmp_path / "trips.csv").write_text("a,b,y\n" + ROWS)
    reads_data = "--data" in command  # pyarrow imports pandas for that
    heavy = [name for name in HEAVY if not (reads_data and name == "pandas")]
    result, imported = imported_by(tmp_path, command.split(), heavy)
    assert (result.returncode, imported) == (code, []), result.stderr


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
    line = outcome_of(result)
    assert not root.exists()
    assert (line["status"], line["run_id"], line["version"]) == ("failed", None, None)
    messages = [text for text in result.stderr.splitlines() if text.startswith("✗")]
    assert messages == [f"✗ {line['reason']}"]
    assert line["error"] == "bad_input"
    assert str(data) in line["reason"]
    for part in parts:
        assert part in line["reason"]


def outcome_of(result, code=2):
    """Returns the last line of a command that has ended with an exit code."""
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_a_root_that_is_taken_is_told_apart(warm_command, data, tmp_path):
    with Root(tmp_path / "root").lock.writing.held():
        line = outcome_of(warm_command("run", "--data", data, "--label", "y", "--root", tmp_path / "root"))
    assert line["error"] == "root_busy"
    assert "Another run is in progress" in line["reason"]


def test_bad_configuration_exits_with_2(warm_command, tmp_path):
    data = tmp_path / "trips.csv"
    data.write_text("a,b,y\n" + ROWS)
    for arguments, part in (
        (["--runner", "beam"], "Set beam.direct.workers"),
        (["--set", "beam.runner=flink"], "set beam.flink.master"),
        (["--runner", "cluster"], "Available runners: kubeflow, beam, local"),
        (["--runner", "kubeflow"], "`estimator-pipelines submit"),
        (["--local"], "--local is for --runner kubeflow only"),
        (["--image", "mine:3"], "--image is for --runner kubeflow only"),
        (["--param", "a=1"], "--param is for --runner kubeflow only"),
        (["--runner", "kubeflow", "--local", "--set", "name=A_B"], "Set kubeflow.name"),
        (["--runner", "kubeflow", "--local", "--resume"], "--resume does not apply"),
        (["--set", "trainer.train_step=5"], "Did you mean train_steps"),
        (["--set", 'evaluator.metrics=["acu"]'], "Did you mean 'auc'"),
        (["--set", 'evaluator.slices=[["z"]]'], "no column 'z'"),
        (["--set", "module.path=no_such_module"], "no_such_module cannot be imported"),
    ):
        result = warm_command("run", "--data", data, "--label", "y", "--root", tmp_path / "root", *arguments)
        assert part in outcome_of(result)["reason"]
    assert not (tmp_path / "root").exists()


def test_a_module_that_exits_as_it_is_imported_is_refused(warm_command, tmp_path):
    data, module = tmp_path / "trips.csv", tmp_path / "quits.py"
    data.write_text("a,b,y\n" + ROWS)
    module.write_text("import sys\nsys.exit(0)\n")
    arguments = ("--data", data, "--label", "y", "--root", tmp_path / "root")
    line = outcome_of(warm_command("run", *arguments, "--set", f"module.file={module}"))
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


def test_resume_with_nothing_to_resume_is_refused_and_starts_nothing(warm_command, tmp_path):
    reason = outcome_of(warm_command("run", "--resume", "--root", tmp_path / "root"))["reason"]
    assert reason.startswith(f"--resume: there is nothing to resume in {tmp_path / 'root'}: it has no")
    assert not (tmp_path / "root").exists()


def test_plan_prints_the_columns_and_writes_a_configuration(warm_command, tmp_path):
    data, target = tmp_path / "trips.csv", tmp_path / "plan.toml"
    data.write_text("a,b,y\n" + ROWS)
    result = warm_command("plan", "--data", data, "--label", "y", "-o", target)
    assert result.returncode == 0
    assert "column  kind" in result.stdout
    assert "not used: numbers the rows" in result.stdout
    assert '"b" = "number"  # number' in target.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.toml", "trips.csv"]
    again = warm_command("plan", "--config", target, "--set", "columns.b=date")
    assert again.returncode == 2
    assert '[columns] b = "date": no format fits all 40 cells' in again.stderr


def test_two_runs_are_compared_by_id_or_version(warm_command, tmp_path):
    recorded(tmp_path)
    recorded(tmp_path, run_id="20260102-000000", version="8", metrics={"auc": 0.875})
    result = warm_command("runs", "--compare", "7", "20260102-000000", "--json", "--root", tmp_path)
    found = json.loads(result.stdout)
    assert found["runs"] == ["20260101-000000", "20260102-000000"]
    assert [one["name"] for one in found["differences"]] == ["version", "auc"]
    result = warm_command("runs", "--compare", "7", "8", "--root", tmp_path)
    assert "+0.125" in result.stdout
    assert "Nothing differs" in warm_command("runs", "--compare", "7", "7", "--root", tmp_path).stdout
    result = warm_command("runs", "--compare", "7", "9", "--root", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "There is no run '9'" in result.stderr


@pytest.mark.more
def test_a_report_and_the_index_are_printed_and_made_once(tmp_path):
    """No drawing library is imported while they are up to date."""
    recorded(tmp_path)
    recorded(tmp_path, run_id="20260102-000000", version="8", metrics={"auc": 0.875})
    script = """
import sys
import tomllib
from pipelines.cli.app import app
app(sys.argv[1:], standalone_mode=False)
print([name for name in ("matplotlib", "jinja2", "numpy", "tensorflow") if name in sys.modules])
"""
    for arguments, page in (([], "20260102-000000"), (["--index"], "index")):
        for imported in (["matplotlib", "jinja2", "numpy"], []):
            result = subprocess.run(
                [sys.executable, "-c", script, "report", *arguments, "--root", tmp_path],
                capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(PROJECT)},
            )  # fmt: skip
            assert result.stdout.splitlines() == [
                str(tmp_path / "runs" / f"{page}.html"), str(imported),
            ]  # fmt: skip


def test_the_index_is_over_all_runs(warm_command, tmp_path):
    recorded(tmp_path)
    result = warm_command("report", "20260101-000000", "--index", "--root", tmp_path)
    assert result.returncode == 2
    assert "--index shows all runs: leave out the run. Received: 20260101-000000 --index" in result.stderr
