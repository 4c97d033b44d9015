"""Runs the commands of docs/kubeflow.md that need no cluster, the others against a server on the loopback."""

import contextlib
import json
import re
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.admission import check_config
from pipelines.runs.definitions.evaluation import check_problem_is_known, known_problem_type
from tests.docs.markdown import ROOT, blocks, commands, read
from tests.pipelines.kubeflow.kfp_server import KfpServer

TEXT = read("docs/kubeflow.md")
CONFIGURATION, PARAMETERS, TRAINING_JOB = blocks(TEXT, "toml")
COMMANDS = [  # but for those of a TFX pipeline of one's own
    [word for word in words[1:] if word != "&"]
    for words in commands(TEXT)
    if words[0] == "estimator-pipelines" and "--pipeline" not in words
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the configuration of the page, and a server of Kubeflow Pipelines."""
    (tmp_path / "taxi.toml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with contextlib.closing(KfpServer()) as server:
        yield server


def test_the_page_has_the_commands_that_it_is_about_and_the_tests_of_the_table():
    assert [command[0] for command in COMMANDS] == ["run", "compile", "submit", *["schedule"] * 5]
    assert [command[1] for command in COMMANDS[3:]] == [*("create", "list", "disable", "enable", "delete")]
    table = read("docs/kubeflow-judges.md").partition("## Defects of TFX")[2].partition("\n## ")[0]
    named = re.findall(r"`(?:tests/pipelines/kubeflow/[\w/]*)?(test_\w+\.py)(?:::(test_\w+))?`", table)
    assert len(named) >= 12
    for name, test in named:
        (file,) = (ROOT / "tests" / "pipelines" / "kubeflow").rglob(name)
        assert not test or f"def {test}(" in file.read_text(), (name, test)


@pytest.mark.more
def test_the_commands_do_what_the_page_says(here, tmp_path):
    outputs = {}
    recurring = []
    for command in COMMANDS[1:]:
        arguments = [here.url if "localhost" in word else word for word in command]
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code == 0, ran.output
        outputs[tuple(command)] = ran.stdout
        recurring.append([{**recurring_run} for recurring_run in here.recurring.values()])
    specification = next(yaml.safe_load_all((tmp_path / "taxi.yaml").read_text()))
    assert specification["schemaVersion"] == "2.1.0"
    (run,) = here.runs.values()
    assert run["runtime_config"]["parameters"] == {"train_steps": 500}
    assert recurring[2][0]["runtime_config"]["parameters"] == {"train_steps": 500}
    assert recurring[2][0]["trigger"]["cron_schedule"]["cron"] == "0 0 3 * * *"
    statuses = [[recurring_run["status"] for recurring_run in step] for step in recurring[2:]]
    assert statuses == [["ENABLED"], ["ENABLED"], ["DISABLED"], ["ENABLED"], []]
    assert "nightly" in outputs[tuple(COMMANDS[4])]
    last = json.loads(outputs[tuple(COMMANDS[2])].splitlines()[-1])
    assert last["run_id"] == run["run_id"]
    assert last["status"] == "SUCCEEDED"


def test_the_example_is_judged_as_what_its_module_makes_of_the_label(tmp_path):
    file = tmp_path / "taxi.toml"
    file.write_text(CONFIGURATION)
    config = load_config(file)
    assert known_problem_type(config) == "binary"
    file.write_text(CONFIGURATION.replace("problem_type", "# problem_type"))
    with pytest.raises(BadInputError, match=r"Set data\.problem_type"):
        check_problem_is_known(load_config(file))


def test_the_stand_in_answers(tmp_path, monkeypatch):
    assert "\npython scripts/kubeflow/stand_in.py --port 8080\n" in TEXT
    monkeypatch.setenv("HOME", str(tmp_path))
    command = [sys.executable, str(ROOT / "scripts/kubeflow/stand_in.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as stand_in:
        try:
            url = stand_in.stdout.readline().strip()
            ran = CliRunner().invoke(app, ["schedule", "list", "--json", "--kubeflow", url])
        finally:
            stand_in.terminate()
    assert (ran.exit_code, ran.stdout) == (0, "[]\n"), ran.output


@pytest.mark.parametrize("block", [PARAMETERS, TRAINING_JOB])
def test_the_other_blocks_are_configurations(tmp_path, block):
    file = tmp_path / "taxi.toml"
    head, _, kubeflow = CONFIGURATION.partition("[kubeflow]\n")
    if block == PARAMETERS:
        kubeflow = block.removeprefix("[kubeflow]\n") + kubeflow
        file.write_text(f"{head}[trainer]\nlearning_rate = 0.1\n[kubeflow]\n{kubeflow}")
    else:
        file.write_text(f"{head}[kubeflow]\n{kubeflow}{block}")
    check_config(load_config(file))
