"""Retention of the steps of TFX pipelines."""

from pipelines.config.retention import RetentionConfig
from pipelines.runs.retention.prune import prune_root
from pipelines.steps.step_folders import StepFolders
from tests.pipelines.steps.test_planning import BLESSED


def texts(team, component, key):
    steps = StepFolders(team.root.artifacts).all_finished(component)
    return [(step.folder / key / "text").read_text() for step in steps]


def test_steps_of_the_newest_runs_stay_also_those_that_older_runs_made(team, run_team):
    run_team(arguments={"text": "a", "times": "1"})
    run_team(arguments={"text": "b", "times": "1"})
    run_team(arguments={"text": "a", "times": "2"})  # Write is reused
    assert texts(team, "Write", "examples") == ["a", "b"]
    newest = RetentionConfig(artifacts=1)
    removals = prune_root(team.root, newest, dry_run=True)
    assert texts(team, "Copy", "model") == ["a", "b", "aa"]
    assert {removal.kind for removal in removals} == {"step"}
    assert len(removals) == 3
    prune_root(team.root, newest)
    assert (texts(team, "Write", "examples"), texts(team, "Copy", "model")) == (["a"], ["aa"])
    assert [one.status for one in run_team(arguments={"text": "a", "times": "2"}).components] == [
        "cached",
        "cached",
    ]
    assert [one.status for one in run_team(arguments={"text": "b", "times": "1"}).components] == [
        "finished",
        "finished",
    ]


def test_the_rules_of_the_configuration_are_applied_after_the_run(team, run_team):
    for text in ("a", "b", "c"):
        run_team("retention.runs=2", arguments={"text": text})
    assert texts(team, "Write", "examples") == ["b", "c"]
    assert len(team.root.records.ids()) == 2


def test_the_newest_blessed_model_stays_as_the_baseline(team, run_team):
    team.define(BLESSED)
    for text, good in (("a", 1), ("b", 1), ("c", 0), ("d", 0)):
        run_team("retention.artifacts=1", arguments={"text": text, "good": str(good)})
    assert texts(team, "Copy", "model") == ["b", "d"]
    (model,) = team.plan(text="e").outputs["latest"]["model"]
    assert (team.root.artifacts / "Copy" / model.step / "model" / "text").read_text() == "b"


def test_what_a_failed_step_left_goes_once_no_run_can_be_resumed(team, run_team):
    assert run_team(arguments={"text": "a", "times": "-1"}).status == "failed"
    folders = StepFolders(team.root.artifacts)
    assert len(folders.unfinished()) == 1
    prune_root(team.root, RetentionConfig(artifacts=1))
    assert len(folders.unfinished()) == 1
    run_team("retention.artifacts=1", arguments={"text": "b"})
    assert folders.unfinished() == []
