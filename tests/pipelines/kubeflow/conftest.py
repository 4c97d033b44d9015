import contextlib
import io
import warnings
from random import Random

import pytest

from pipelines.config.load import load_config
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.kubeflow.local_execution.local_run import run_locally
from pipelines.kubeflow.training.training_job import VARIABLE
from pipelines.root import Root
from pipelines.terminal.progress import PlainDisplay, Progress
from tests.pipelines.steps.conftest import Team

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kfp warns of its own versions
    import kfp  # noqa: F401


@pytest.fixture(scope="session")
def config_of():
    """Returns a function that makes a configuration which Kubeflow takes, with changes by section."""

    def make(kubeflow=(), **sections):
        return PipelineConfig.model_validate(
            {
                "name": "taxi",
                "data": {"path": "/mnt/pipelines/data/taxi.csv", "label": "tips"},
                "kubeflow": {
                    "image": "registry.example.com/pipelines:1.0",
                    "pipeline_root": "minio://mlpipeline/v2/artifacts",
                    "root": "/mnt/pipelines/taxi",
                    "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines"}],
                    **dict(kubeflow),
                },
                **sections,
            }
        )

    return make


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)


class StepsHere:
    """Runs the containers of steps in this process: all but the imports, which take long."""

    def run(self, process, log, timeout_secs=None):
        """Runs one, and returns its exit code."""
        from pipelines.kubeflow import step

        assert process.arguments[:4] == ("python", "-P", "-m", "pipelines.kubeflow.step")
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
            for name in ("KFP_RUN_ID", VARIABLE):
                if name in process.environment:
                    patch.setenv(name, process.environment[name])
            code = step.main(process.arguments[4:])
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as stream:
            stream.write(said.getvalue())
        return code

    def close(self):
        """Does nothing: no container is running."""


@pytest.fixture(scope="session")
def run_here():
    """Returns a function that executes the compiled pipeline of settings in a root."""

    def run(root, *settings, parameters=(), config=None, **request):
        progress = Progress(PlainDisplay(io.StringIO(), secs_between_activities=0))
        return run_locally(
            Root(root),
            config or load_config(settings=settings),
            progress,
            dict(parameters),
            parallelism=1,
            processes=StepsHere(),
            **request,
        )

    return run


@pytest.fixture(scope="session")
def little_data(tmp_path_factory):
    """A CSV of 600 rows whose label depends on a number and on a category."""
    file = tmp_path_factory.mktemp("little") / "little.csv"
    random = Random(7)
    rows = ["size,color,sold"]
    for _ in range(600):
        size, color = random.gauss(0, 1), random.choice(["red", "green", "blue"])
        score = 2 * size + (1.5 if color == "red" else -0.5) + random.gauss(0, 0.7)
        rows.append(f"{size:.4f},{color},{'yes' if score > 0 else 'no'}")
    file.write_text("\n".join(rows) + "\n")
    return file


@pytest.fixture(scope="session")
def little_settings(little_data):
    """Settings of a small model for these data."""
    return (
        f"data.path={little_data}",
        "data.label=sold",
        "trainer.model=linear",
        "trainer.train_steps=60",
        "kubeflow.name=little",
    )
