import json

import pytest

import estimator_core as est
from estimator_core.hooks import stop_at_checkpoint_step


def test_the_chief_stops_at_the_step(make_estimator, input_fn):
    estimator = make_estimator()
    hook = est.experimental.make_stop_at_checkpoint_step_hook(estimator, 3)
    estimator.train(input_fn, hooks=[hook])
    assert estimator.get_variable_value("global_step") == 3


def test_a_worker_waits_for_the_checkpoint(make_estimator, input_fn, tmp_path):
    chief = make_estimator()
    waited = []

    def wait(secs):
        waited.append(secs)
        if len(waited) == 2:
            chief.train(input_fn, max_steps=4)

    hook = stop_at_checkpoint_step.StopAtCheckpointStepHook(chief.model_dir, 4, 30, wait)
    worker = est.Estimator(chief._model_fn, tmp_path / "worker", params={"learning_rate": 0.25})
    worker.train(input_fn, hooks=[hook], max_steps=100)
    assert waited == [30, 30]
    assert worker.get_variable_value("global_step") < 10


def test_workers_get_the_waiting_hook(monkeypatch, make_estimator):
    cluster = {"chief": ["c:1"], "worker": ["w:1"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    hook = est.experimental.make_stop_at_checkpoint_step_hook(make_estimator(), 3)
    assert isinstance(hook, stop_at_checkpoint_step.StopAtCheckpointStepHook)


def test_the_last_step_has_to_be_given():
    with pytest.raises(ValueError, match="last_step=None"):
        stop_at_checkpoint_step.StopAtCheckpointStepHook("model", None)
