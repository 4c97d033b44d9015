import json
import os
import shutil

import pytest

from pipelines.kubeflow.run_folder import PlannedRun, PlannedStep, RunFolder, StepEnd, current_kubeflow_run
from pipelines.root import Root
from pipelines.steps.step_plan import FolderRef, OutputRef, StepPlan


def test_steps_leave_how_they_ended(tmp_path):
    folder = RunFolder(Root(tmp_path), "run/1")
    assert folder.read_run_id() is None
    folder.write_run("20260102-030405")
    folder.write_step(StepEnd("Transform", 2.5))
    failed = StepEnd("Trainer", 1.5, "it broke", True, is_interrupted=True)
    folder.write_step(failed)
    later = StepEnd("Evaluator", 0.5, "broke as well")
    folder.write_step(later)
    shutil.copy(folder.path / "Trainer.end.json", folder.path / "Trainer (copy).end.json")
    os.utime(folder.path / "Transform.end.json", (10, 10))
    os.utime(folder.path / "Trainer.end.json", (20, 20))
    os.utime(folder.path / "Evaluator.end.json", (30, 30))
    again = RunFolder(Root(tmp_path), "run/1")
    assert again.read_run_id() == "20260102-030405"
    assert again.failures() == [failed, later]
    assert [end.component for end in again.steps()] == ["Transform", "Trainer", "Evaluator"]
    assert again.read_step("Pusher") is None
    assert RunFolder(Root(tmp_path), "run-2").steps() == []
    again.remove()
    assert folder.steps() == []


def test_components_may_be_named_like_the_files_of_the_run_and_a_try_replaces_the_end(tmp_path):
    folder = RunFolder(Root(tmp_path), "run")
    folder.write_run("20260102-030405")
    folder.write_plan(PlannedRun(()))
    for component in ("run", "plan"):
        folder.write_step(StepEnd(component, 1.5, "it broke"))
        folder.write_step(StepEnd(component, 2.5))
        assert folder.failures() == []
        folder.forget_step(component)
    assert folder.read_run_id() == "20260102-030405"
    assert folder.read_plan() == PlannedRun(())


def test_the_run_is_known_from_the_pod_or_on_vertex_from_the_output_file():
    file = "/gcs/bucket/root/123456/taxi-20260102030405/trainer_-42/executor_output.json"
    given = json.dumps({"outputs": {"outputFile": file}})
    assert current_kubeflow_run("", {"KFP_RUN_ID": "of-the-pod"}) == "of-the-pod"
    assert current_kubeflow_run(given, {"KFP_RUN_ID": "of-the-pod"}) == "of-the-pod"
    assert current_kubeflow_run(given, {}) == "taxi-20260102030405"
    elsewhere = given.replace("/gcs/bucket", "/tmp")
    for executor_input in ("", elsewhere):
        with pytest.raises(LookupError, match="KFP_RUN_ID is not set"):
            current_kubeflow_run(executor_input, {})


def test_a_plan_is_read_as_it_was_written(tmp_path):
    inputs = {"data": (OutputRef("Gen", "ab", "examples"), FolderRef("kept/a/model", "x.Model"))}
    step = StepPlan("Trainer", {"type": "t"}, {"p": [1]}, inputs, {"model": "x.Model"}, {"code": "c"})
    planned = PlannedRun(
        (PlannedStep(step, {"type": "t"}, "run-a", "it is new", {"kind": "SearchCheck"}),),
        ("--a=1",),
        user_files=("a.py",),
    )
    folder = RunFolder(Root(tmp_path), "run")
    with pytest.raises(LookupError, match="every step mounts"):
        folder.read_plan()
    folder.write_plan(planned)
    assert folder.read_plan() == planned
    assert folder.read_plan().step("Trainer").key == planned.steps[0].key == f"run-a/{step.name}"
    assert folder.steps() == []


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("run.json", '{"run_id": 5}', "run_id: Input should be a valid string"),
        ("plan.json", '{"steps": [{"plan": {}}]}', "steps.0.plan.component: "),
        ("Trainer.end.json", '{"component": "Trainer", "elapsed_secs": "long"}', "elapsed_secs: "),
    ],
)
def test_a_file_of_another_form_is_named_with_the_wrong_value(tmp_path, name, content, problem):
    folder = RunFolder(Root(tmp_path), "run")
    folder.path.mkdir(parents=True)
    (folder.path / name).write_text(content)
    readers = {"run.json": folder.read_run_id, "plan.json": folder.read_plan}
    with pytest.raises(LookupError, match=rf"{name} cannot be read \({problem}.*start a new run"):
        readers.get(name, folder.failures)()
