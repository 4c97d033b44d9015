import json

import pytest
from pydantic import TypeAdapter
from tfx.types.standard_artifacts import ExampleStatistics, ModelBlessing

from components.evaluator.gate.verdict import Verdict
from pipelines.data.staging import StagedData
from pipelines.definitions.csv_to_serving import csv_to_serving
from pipelines.errors import RunFailedError
from pipelines.kubeflow.steps.artifacts import metadata_of
from pipelines.kubeflow.steps.component_plans import component_plans
from pipelines.kubeflow.steps.push_step import run_pusher
from pipelines.kubeflow.steps.served_baseline import (
    forget_unserved,
)
from pipelines.kubeflow.steps.step_call import StepCall
from pipelines.plan.run_plan import RunRequest, plan_run
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_model, find_baseline_statistics
from pipelines.root.records import RunOutcome
from pipelines.runs.approval import approve

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT presence { min_count: 1 } }
"""


@pytest.fixture
def push(data, tmp_path, display):
    """Returns a function that pushes a model, and gives the outcome."""
    root = tmp_path / "root"
    root.mkdir()
    copies = tmp_path / "minio"
    model = copies / "model" / "Format-Serving"
    model.mkdir(parents=True)
    (model / "saved_model.pb").write_bytes(b"a model")
    for name in ("evaluation", "schema", "statistics"):
        (copies / name).mkdir()
    (copies / "schema" / "schema.pbtxt").write_text(SCHEMA)
    statistics = ExampleStatistics()
    statistics.split_names = '["train"]'

    def make(run_id, blessed=True, baseline_version=None, fingerprint="1", doubts=()):
        blessed, held = blessed and not doubts, bool(doubts)
        failures = [] if blessed or held else ["too bad"]
        verdict = Verdict(blessed, {}, failures, doubts=doubts, held=held)
        verdict.write(str(copies / "evaluation"))
        plan = plan_run(
            RunRequest(
                root=Root(root),
                data=str(data),
                label="y",
                settings=(f"trainer.seed={fingerprint}",),
            ),
            display,
        )
        pipeline = csv_to_serving(plan, StagedData(data.parent, data.name, ()))
        found = component_plans(plan, pipeline, run_id, baseline_version)["pusher"]
        blessing = ModelBlessing()
        blessing.set_int_custom_property("blessed", int(blessed))
        blessing.set_int_custom_property("held", int(held))
        metadata = {
            "model_blessing": metadata_of(blessing),
            "statistics": metadata_of(statistics),
        }
        names = ("model", "model_blessing", "evaluation", "schema", "statistics")
        inputs = {
            name: {"artifacts": [{"name": name, "metadata": metadata.get(name, {})}]}
            for name in names
        }
        output = {"artifacts": [{"name": "pushed_model", "uri": "minio://b/pushed"}]}
        call = StepCall(
            Root(root),
            {"inputs": {"artifacts": inputs}, "outputs": {"artifacts": {"pushed_model": output}}},
            {name: str(copies / name) for name in names},
            {"pushed_model": str(copies / "pushed")},
        )
        return json.loads(run_pusher(call, found, run_id)[1])

    make.root = Root(root)
    return make


def test_a_push_keeps_what_the_next_run_needs(push):
    outcome = push("run-a")
    assert outcome["status"] == "pushed"
    (version,) = push.root.versions.served()
    assert outcome["version"] == str(version)
    served = push.root.serving / str(version) / "saved_model.pb"
    assert served.read_bytes() == b"a model"
    model = find_baseline_model(push.root, "run-new", required=True)
    assert (model / "Format-Serving" / "saved_model.pb").read_bytes() == b"a model"
    assert find_baseline_statistics(push.root, "run-new").is_dir()
    assert push.root.schema.file.is_file()


def test_a_step_that_is_tried_again_does_not_push_twice(push):
    first = push("run-a")
    assert push("run-a") == first
    assert len(push.root.versions.served()) == 1


def test_a_model_that_is_not_blessed_leaves_nothing(push):
    outcome = push("run-a", blessed=False)
    assert outcome["status"] == "not_blessed"
    assert outcome["reason"] == "too bad"
    assert push.root.versions.served() == []
    assert not list(push.root.kept.glob("*"))
    assert not push.root.schema.file.exists()
    assert not list(push.root.path.glob(".schema-*"))


def test_a_held_model_stays_in_the_root_until_it_is_decided(push, killed):
    push.root.records.write(killed.changed(run_id="run-a", kubeflow_run="kf"))
    outcome = push("run-a", doubts=("the labels",))
    assert (outcome["status"], outcome["reason"]) == ("held", "the labels")
    held = TypeAdapter(RunOutcome).validate_python(outcome).held
    assert held.model_uri == "kept/run-a/model"
    model = push.root.path / held.saved_model / "saved_model.pb"
    assert model.read_bytes() == b"a model"
    assert push.root.versions.served() == []
    assert not push.root.schema.file.exists()
    record = killed.changed(run_id="run-a", status="held", reason="the labels", held=held)
    push.root.records.write(record)
    for number in range(4):  # more than `schema accept` may need
        push.root.records.write(killed.changed(run_id=f"run-a{number}", status="failed"))
    forget_unserved(push.root)
    approved = approve(push.root, "run-a", "it is right", "ann")
    assert (push.root.serving / approved.version / "saved_model.pb").read_bytes() == b"a model"
    assert find_baseline_model(push.root, "run-new", required=True) == model.parent.parent
    assert find_baseline_statistics(push.root, "run-new").is_dir()
    assert push.root.schema.file.is_file()


def test_the_same_model_is_not_pushed_again(push):
    version = push("run-a")["version"]
    outcome = push("run-b", baseline_version=version)
    assert outcome["status"] == "unchanged"
    assert [folder.name for folder in push.root.kept.glob("*")] == ["run-a"]


def test_a_version_that_came_between_ends_the_run(push):
    version = push("run-a")["version"]
    with pytest.raises(RunFailedError, match=rf"version {version} serves now.*compared with none"):
        push("run-b", fingerprint="2")
    later = push("run-b", baseline_version=version, fingerprint="2")
    assert later["status"] == "pushed"
    with pytest.raises(RunFailedError, match=f"compared with version {version}"):
        push("run-c", baseline_version=version, fingerprint="3")
