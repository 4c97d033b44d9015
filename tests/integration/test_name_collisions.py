"""The command beside folders `components` and `pipelines` of the user's own, in each way of running."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.examples.taxi.generate import write_csv

PROJECT = Path(__file__).parents[2]
TEMPLATE = PROJECT / "pipelines" / "examples" / "project" / "project_name.py"
KUBEFLOW = "{image = 'not used', pipeline_root = 'minio://bucket/runs', root = '/mnt/root'}"
WAYS = {
    "in_this_process": (),
    "beam_processes_of_args": (
        "--set",
        "beam.args=['--direct_num_workers=2', '--direct_running_mode=multi_processing']",
    ),
    "beam_processes": ("--runner", "beam", "--set", "beam.direct.workers=2"),
    "cluster": ("--set", "trainer.workers=2", "--set", "trainer.ps=1"),
    "kubeflow_steps": ("--runner", "kubeflow", "--local", "--set", f"kubeflow={KUBEFLOW}"),
}


@pytest.fixture
def project(tmp_path):
    """A project whose module `my_project.trips` is beside packages with the names of ours."""
    for name in ("components", "pipelines", "my_project"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "components" / "features.py").write_text("FACTOR = 0.2\n")
    shutil.copy(TEMPLATE, tmp_path / "my_project" / "trips.py")
    write_csv(tmp_path / "trips.csv", 3_000, 1)
    (tmp_path / "pipeline.toml").write_text("""
name = "trips"
[data]
path = "trips.csv"
label = "tips"
[module]
path = "my_project.trips"
[trainer]
train_steps = 100
eval_steps = 100
[evaluator]
label = "good_tip"
[[evaluator.thresholds]]
metric = "auc"
lower = 0.6
""")
    return tmp_path


def run(project, *options, start="estimator_pipelines"):
    ran = subprocess.run(
        [sys.executable, "-m", start, "run", "--config", "pipeline.toml", *options],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stderr)
    return ran.returncode, json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", WAYS)
def test_a_model_is_pushed_beside_packages_of_our_names(project, way):
    code, outcome = run(project, *WAYS[way])
    assert (code, outcome["status"]) == (0, "pushed")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_module_form_pushes_beside_folders_of_our_names(project):
    for name in ("components", "pipelines"):
        (project / name / "__init__.py").unlink()
    assert run(project, start="pipelines")[1]["status"] == "pushed"


def test_a_module_that_imports_its_own_components_is_refused_with_the_fix(project, warm_command):
    with (project / "my_project" / "trips.py").open("a") as module:
        module.write("\nfrom components.features import FACTOR\n")
    ran = warm_command("run", "--config", "pipeline.toml", cwd=project)
    outcome = json.loads(ran.stdout.splitlines()[-1])
    assert (ran.returncode, outcome["error"]) == (2, "bad_input")
    assert "The module my_project.trips cannot be imported" in outcome["reason"]
    assert f"({PROJECT}/components), so {project}/components can't" in outcome["reason"]
    assert "Rename it, for example to my_components" in outcome["reason"]
    assert not (project / "pipeline_root" / "runs").exists()
