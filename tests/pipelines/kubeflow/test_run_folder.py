import os

import pytest

from pipelines.kubeflow.run_folder import RunFolder, StepEnd, kubeflow_run_of
from pipelines.root import Root


def test_steps_leave_how_they_ended(tmp_path):
    folder = RunFolder(Root(tmp_path), "run/1")
    assert folder.read_run_id() is None
    folder.write_run("20260102-030405")
    folder.write_step(StepEnd("Transform", 2.5))
    failed = StepEnd("Trainer", 1.5, "it broke", True, '[{"method": "note"}]')
    folder.write_step(failed)
    later = StepEnd("Evaluator", 0.5, "broke as well")
    folder.write_step(later)
    os.utime(folder.path / "Transform.json", (10, 10))
    os.utime(folder.path / "Trainer.json", (20, 20))
    os.utime(folder.path / "Evaluator.json", (30, 30))
    again = RunFolder(Root(tmp_path), "run/1")
    assert again.read_run_id() == "20260102-030405"
    assert again.failures() == [failed, later]
    assert [end.component for end in again.steps()] == ["Transform", "Trainer", "Evaluator"]
    assert again.read_step("Pusher") is None
    assert RunFolder(Root(tmp_path), "run-2").steps() == []
    again.remove()
    assert folder.steps() == []


def test_a_step_that_is_tried_again_replaces_its_end(tmp_path):
    folder = RunFolder(Root(tmp_path), "run")
    folder.write_step(StepEnd("Trainer", 1.5, "it broke"))
    folder.write_step(StepEnd("Trainer", 2.5))
    assert folder.failures() == []


def test_the_run_is_known_from_the_pod_or_on_vertex_from_the_outputs():
    uri = "gs://bucket/root/123456/taxi-20260102030405/trainer_-42/model"
    assert kubeflow_run_of([], {"KFP_RUN_ID": "of-the-pod"}) == "of-the-pod"
    assert kubeflow_run_of([uri], {"KFP_RUN_ID": "of-the-pod"}) == "of-the-pod"
    assert kubeflow_run_of([uri], {}) == "taxi-20260102030405"
    with pytest.raises(LookupError, match="KFP_RUN_ID is not set"):
        kubeflow_run_of(["minio://bucket/a/b/c"], {})
