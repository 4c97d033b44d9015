"""A Kubernetes of one node for the tests in this folder: `make test-kubernetes`."""

import subprocess
from pathlib import Path

import pytest

from scripts.kubernetes.cluster import Cluster
from tests.kubernetes.namespace import CLAIM, IMAGE, MOUNT, Namespace, inside

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / ".kubernetes"
ROWS = 4000
CONFIG = f"""
name = "taxi"
[data]
path = "taxi.csv"
label = "tips"
[module]
path = "pipelines.examples.taxi.taxi_module"
[trainer]
train_steps = 400
eval_steps = 20
[evaluator]
label = "tips_xf"
[[evaluator.thresholds]]
metric = "auc"
lower = 0.6
[kubeflow]
image = "{IMAGE}"
[[kubeflow.volumes]]
claim = "{CLAIM}"
path = "{MOUNT}"
"""
# What the service accounts of our namespaces ask for.
AUDIT = [
    {
        "level": "Metadata",
        "userGroups": ["system:serviceaccounts:demo", "system:serviceaccounts:training"],
        "omitStages": ["RequestReceived", "ResponseStarted"],
    }
]


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kubernetes)


@pytest.fixture(scope="session")
def cluster():
    """A cluster whose parts have been built; a missing part is built first."""
    subprocess.run([PROJECT / "scripts/kubernetes/setup.sh", FOLDER], check=True)
    with Cluster(FOLDER, AUDIT) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def namespace(cluster):
    """Makes namespaces, by name."""
    made = {}

    def namespace(name):
        if name not in made:
            made[name] = Namespace(cluster, name)
        return made[name]

    return namespace


@pytest.fixture(scope="session")
def demo(namespace):
    """A namespace with the demo's data and configuration on its volume."""
    demo = namespace("demo")
    demo.run(
        "data",
        *("python", "-m", "pipelines.examples.taxi.generate", f"--rows={ROWS}", "--seed=1"),
        *("--out", inside("taxi.csv")),
    )
    demo.write("taxi.toml", CONFIG)
    return demo


@pytest.fixture(scope="session")
def demo_run(demo):
    """The ended run of the demo in `root`, and a second run during it: exit code and output of both."""
    command = ("python", "-m", "estimator_pipelines", "run")
    command += ("--config", inside("taxi.toml"), "--root", inside("root"))
    demo.start("run", *command)
    records = demo.volume / "root" / "runs"
    demo.wait_for(lambda: any(records.glob("*.json")), "the run has not begun", 900)
    demo.start("meanwhile", *command)
    meanwhile = demo.ended("meanwhile")
    return demo.ended("run"), meanwhile
