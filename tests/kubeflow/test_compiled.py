"""Our compiled pipeline, unchanged, run by KFP's own code.

The variable IMAGE names an image in which the containers run; without it, they are processes here.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

import pytest
from kfp import components, local

from pipelines.kubeflow.local_execution.container_engine import image_container
from pipelines.root import Root
from tests.kubeflow.launcher import Launcher, launching

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = pathlib.Path(__file__).parents[2]
IMAGE = os.environ.get("IMAGE")
CONFIG = """
name = "taxi"
[data]
path = "{mount}/taxi.csv"
label = "tips"
[module]
path = "pipelines.examples.taxi.taxi_module"
[trainer]
train_steps = 1000
eval_steps = 20
[evaluator]
label = "tips_xf"
slices = [[], ["trip_start_hour"]]
[[evaluator.thresholds]]
metric = "auc"
lower = 0.6
[kubeflow]
image = "{image}"
root = "{mount}/taxi"
[[kubeflow.volumes]]
claim = "pipelines"
path = "{mount}"
"""
STEPS = [
    *("Plan", "CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform"),
    *("Trainer", "Evaluator", "ServingCheck", "Pusher", "Record", "End"),
]


@pytest.fixture(scope="module")
def volume(tmp_path_factory):
    """The folder that every step sees."""
    folder = tmp_path_factory.mktemp("volume")
    folder.chmod(0o777)
    folder.parent.chmod(0o755)
    return folder


@contextlib.contextmanager
def containers(root, volume, mount):
    """Returns a function that runs a container's command: in the image, or here."""
    if not IMAGE:
        yield lambda argv, environment: [
            *("env", *(f"{name}={value}" for name, value in environment.items())),
            *(f"PYTHONPATH={ROOT}", sys.executable, *argv[1:]),
        ]
        return
    mounts = {str(root): str(root), str(volume): mount}
    with image_container(IMAGE) as container:
        yield lambda argv, environment: container.command(argv, environment, mounts)


def test_the_demo_from_the_yaml_to_a_pushed_model(tmp_path, volume):
    mount = "/mnt/pipelines" if IMAGE else str(volume)
    config = tmp_path / "taxi.toml"
    config.write_text(CONFIG.format(mount=mount, image=IMAGE or "local/pipelines:1"))
    file = tmp_path / "pipeline.yaml"
    _python("-m", "pipelines", "compile", "--config", config, "-o", file)
    _python(
        *("-m", "pipelines.examples.taxi.generate", "--rows", 4000, "--seed", 1),
        *("--out", volume / "taxi.csv"),
    )
    root = tmp_path / "pipeline_root"
    root.mkdir()
    tmp_path.chmod(0o755)

    with containers(root, volume, mount) as command:
        launcher = Launcher(root, _with_run_id(command))
        local.init(runner=local.DockerRunner(), pipeline_root=str(root))
        with launching(launcher):
            components.load_component_from_file(str(file))(train_steps=400)

    steps = [_option(argv, "pipelines.kubeflow.step") for _, argv, _ in launcher.launched]
    assert sorted(steps) == sorted(STEPS)
    assert steps[-1] == "End"
    assert {code for _, _, code in launcher.launched} == {0}
    (record,) = Root(volume / "taxi").records.read_all()
    assert record.status == "pushed"
    assert record.kubeflow_run == _option(launcher.launched[0][1], "--run")
    assert record.metrics["auc"] > 0.6
    model = volume / "taxi/serving" / str(record.version) / "saved_model.pb"
    assert model.stat().st_uid == (1000 if IMAGE else os.getuid())
    # The default of train_steps, 1000, would be there if the run's parameter had not arrived.
    assert _option(launcher.launched[0][1], "trainer.train_steps") == "400"


def _with_run_id(command):
    """Sets the variable that a pod takes from its label: the id that kfp.local gives to steps of the run."""
    values = {}

    def with_run_id(argv):
        if "--run" in argv:
            values["KFP_RUN_ID"] = _option(argv, "--run")
        return command(argv, values)

    return with_run_id


def _option(argv, name):
    return argv[argv.index(name) + 1]


def _python(*arguments):
    subprocess.run(
        [sys.executable, *map(str, arguments)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
    )
