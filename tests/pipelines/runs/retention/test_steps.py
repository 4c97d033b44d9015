"""Retention of the steps of TFX pipelines."""

import pytest

from pipelines.config.retention import RetentionConfig
from pipelines.config.tfx_pipeline import load_tfx_pipeline_config
from pipelines.runs.retention.prune import prune_root
from pipelines.runs.tfx_pipeline import TfxPipelineRequest, run_tfx_pipeline
from pipelines.steps.step_folders import StepFolders
from pipelines.terminal.progress import Progress
from tests.pipelines.runs.test_run import NoCapture
from tests.pipelines.steps.conftest import Team
from tests.pipelines.steps.test_planning import BLESSED


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)


@pytest.fixture
def run(team, display):
    """Returns a function that runs the team's pipeline with arguments, and returns the record."""

    def run_it(*settings, **arguments):
        config = load_tfx_pipeline_config(None, str(team.file), arguments, {}, settings)
        request = TfxPipelineRequest(team.root, config)
        return run_tfx_pipeline(request, Progress(display), NoCapture())

    return run_it


def texts(team, component, key):
    steps = StepFolders(team.root.artifacts).all_finished(component)
    return [(step.folder / key / "text").read_text() for step in steps]


def test_steps_of_the_newest_runs_stay_also_those_that_older_runs_made(team, run):
    run(text="a", times="1")
    run(text="b", times="1")
    run(text="a", times="2")  # Write is reused
    assert texts(team, "Write", "examples") == ["a", "b"]
    removals = prune_root(team.root, RetentionConfig(artifacts=1), dry_run=True)
    assert texts(team, "Copy", "model") == ["a", "b", "aa"]
    assert {removal.kind for removal in removals} == {"step"}
    assert len(removals) == 3
    prune_root(team.root, RetentionConfig(artifacts=1))
    assert (texts(team, "Write", "examples"), texts(team, "Copy", "model")) == (["a"], ["aa"])
    assert [one.status for one in run(text="a", times="2").components] == ["cached", "cached"]
    assert [one.status for one in run(text="b", times="1").components] == ["finished", "finished"]


def test_the_rules_of_the_configuration_are_applied_after_the_run(team, run):
    for text in ("a", "b", "c"):
        run("retention.runs=2", text=text)
    assert texts(team, "Write", "examples") == ["b", "c"]
    assert len(team.root.records.ids()) == 2


def test_the_newest_blessed_model_stays_as_the_baseline(team, run):
    team.define(BLESSED)
    for text, good in (("a", 1), ("b", 1), ("c", 0), ("d", 0)):
        run("retention.artifacts=1", text=text, good=str(good))
    assert texts(team, "Copy", "model") == ["b", "d"]
    (model,) = team.plan(text="e").outputs["latest"]["model"]
    assert (team.root.artifacts / "Copy" / model.step / "model" / "text").read_text() == "b"


def test_what_a_failed_step_left_goes_once_no_run_can_be_resumed(team, run):
    assert run(text="a", times="-1").status == "failed"
    folders = StepFolders(team.root.artifacts)
    assert len(folders.unfinished()) == 1
    prune_root(team.root, RetentionConfig(artifacts=1))
    assert len(folders.unfinished()) == 1
    run("retention.artifacts=1", text="b")
    assert folders.unfinished() == []
