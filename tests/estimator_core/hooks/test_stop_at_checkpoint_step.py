import pytest

import estimator_core as est
from estimator_core.hooks import stop_at_checkpoint_step


def test_the_chief_stops_at_the_step(make_estimator, input_fn):
    estimator = make_estimator()
    estimator.train(input_fn, hooks=[est.experimental.make_stop_at_checkpoint_step_hook(estimator, 3)])
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


@pytest.mark.parametrize(("settings", "secs"), [({}, 30), ({"wait_after_file_check_secs": 7}, 7)])
def test_a_worker_looks_and_waits_only_from_the_step_before_the_last_on(
    monkeypatch, make_estimator, input_fn, as_task, settings, secs
):
    chief = make_estimator()
    waited = []
    monkeypatch.setattr(
        stop_at_checkpoint_step.StopAtCheckpointStepHook.__init__, "__defaults__", (30, waited.append)
    )
    as_task("worker", tasks={"chief": ["c:1"], "worker": ["w:1"]})
    worker = make_estimator()
    monkeypatch.delenv("TF_CONFIG")
    hook = est.experimental.make_stop_at_checkpoint_step_hook(worker, 4, **settings)
    stops = []

    class Context:
        def request_stop(self):
            stops.append(True)

    def after(step):
        values = est.SessionRunValues(results=step, options=None, run_metadata=None)
        hook.after_run(Context(), values)

    after(2)  # of the step from 2 to 3
    assert waited == []
    after(3)
    assert waited == [secs]
    chief.train(input_fn, max_steps=3)
    after(4)
    assert (waited, stops) == ([secs, secs], [])
    chief.train(input_fn, max_steps=4)
    after(2)
    assert stops == []
    after(3)
    assert (waited, stops) == ([secs, secs], [True])


def test_the_last_step_and_the_directory_have_to_be_given():
    with pytest.raises(ValueError, match="last_step=None"):
        stop_at_checkpoint_step.StopAtCheckpointStepHook("model", None)
    with pytest.raises(ValueError, match="model_dir=None"):
        stop_at_checkpoint_step.StopAtCheckpointStepHook(None, 4)
