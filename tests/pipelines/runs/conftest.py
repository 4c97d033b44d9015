import pytest

from pipelines.config.tfx_pipeline import load_tfx_pipeline_config
from pipelines.root import Root
from pipelines.runs.plan.run_plan import RunRequest, plan_run
from pipelines.runs.run import run
from pipelines.runs.tfx_pipeline import run_tfx_pipeline
from pipelines.terminal.progress import Progress
from tests.pipelines.steps.conftest import Team


class NoCapture:
    def move_output(self, log):
        self.log = log


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "root")


@pytest.fixture
def plan(data, root, display):
    """Returns a function that plans a run of the data; settings are those of `--set`."""

    def make(*settings, **request):
        request = {"root": root, "data": str(data), "label": "y", **request}
        return plan_run(RunRequest(settings=settings, **request), display)

    return make


@pytest.fixture
def run_csv(data, root, display):
    """Returns a function that runs the pipeline from a CSV on the data."""

    def run_it(*settings, **request):
        request = {"root": root, "data": str(data), "label": "y", **request}
        return run(RunRequest(settings=settings, **request), Progress(display), NoCapture())

    return run_it


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)


@pytest.fixture
def run_team(team, display):
    """Returns a function that runs the team's pipeline."""

    def run_it(*settings, arguments=(), parameters=(), **request):
        config = load_tfx_pipeline_config(None, str(team.file), dict(arguments), dict(parameters), settings)
        return run_tfx_pipeline(RunRequest(team.root, **request), config, Progress(display), NoCapture())

    return run_it
