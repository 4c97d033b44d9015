"""Recurring runs of teams' TFX pipelines on a stand-in of ours for Kubeflow, which executes what they submit.

Real are the compiled YAML, the command line and each step; the server, its clock and the pods are ours.
"""

import contextlib
import json

import pytest

from tests.kubeflow_cluster.kubeflow import ENDED, until
from tests.kubeflow_cluster.stand_in.executing_server import ExecutingServer
from tests.kubeflow_cluster.stand_in.pods_server import PodsServer
from tests.tfx_pipelines import projects

SECS = 600
# With Plan, Record and End; Resolvers and Importers have none.
TASKS = {"taxi": 11, "bills": 5, "stock": 8}
CONFIG = """
[kubeflow]
image = "registry.example.com/pipelines:1.0"
root = "{folder}/root"
[[kubeflow.volumes]]
claim = "pipelines"
path = "{folder}"
"""


@pytest.fixture
def cluster(tmp_path):
    with contextlib.closing(PodsServer(tmp_path / "pods")) as server:
        yield server


@pytest.fixture
def kubeflow(cluster, tmp_path):
    with contextlib.closing(ExecutingServer(cluster, tmp_path / "kubeflow")) as server:
        yield server


def ended(kubeflow, recurring_run, number):
    """Waits for the run of a recurring run that has a number; its state, and its id."""

    def find():
        started = kubeflow.started_by(recurring_run)
        execution = kubeflow.executions.get(started[number]) if len(started) > number else None
        return execution is not None and execution.state in ENDED

    until(find, SECS)
    run = kubeflow.started_by(recurring_run)[number]
    return kubeflow.executions[run].state, run


@pytest.mark.slow
@pytest.mark.timeout(2 * SECS)
@pytest.mark.parametrize("name", projects.NAMES)
def test_what_a_recurring_run_submits_runs(name, kubeflow, cluster, warm_command, tmp_path):
    folder = tmp_path / "volume"
    projects.lay(name, folder)
    (folder / "kubeflow.toml").write_text(CONFIG.format(folder=folder))
    options = ("--cron", "0 3 * * *", "--kubeflow", kubeflow.url, "--name", "nightly")
    made = warm_command(
        *("schedule", "create", "--config", "kubeflow.toml", *projects.options(name, folder)),
        *options,
        cwd=folder,
    )
    assert made.returncode == 0, made.stderr
    recurring = json.loads(made.stdout.splitlines()[-1])["recurring_run_id"]

    def record(number):
        state, run = ended(kubeflow, recurring, number)
        assert state == "SUCCEEDED"
        records = map(json.loads, map(read_text, (folder / "root" / "runs").glob("*.json")))
        (own_record,) = (candidate for candidate in records if candidate["kubeflow_run"] == run)
        pods = (pod.body["metadata"]["labels"] for pod in cluster.pods.values())
        tasks = {labels["task"] for labels in pods if labels["pipeline/runid"] == run}
        print(tasks, *own_record["components"], sep="\n")
        return own_record, tasks

    first, tasks = record(0)
    assert first["status"] == projects.STATUS[name]
    assert len(tasks) == TASKS[name]
    projects.assert_made(name, folder, folder / "root")

    kubeflow.recur(recurring)
    second, tasks = record(1)
    projects.assert_unchanged(name, second)
    assert tasks == {"plan", "record", "end"} | {task.lower() for task in projects.AGAIN[name]}


def read_text(file):
    return file.read_text()
