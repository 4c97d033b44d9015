"""The expected values and types of errors are those of tf.estimator 2.15."""

import logging

import pytest

import estimator_core
from estimator_core.installation import old_training
from tests.estimator_core.installation.test_old_helpers import input_fn, model_fn
from tests.estimator_core.programs import Recorder

EVALUATED, MISSING, NOT_NEW = "evaluated", "missing checkpoint", "no new checkpoint"


class Listener(old_training._ContinuousEvalListener):
    """Notes the passes, and ends them after a number of them."""

    def __init__(self, passes, ends_before=False):
        self.passes = passes
        self.ends_before = ends_before
        self.results = []

    def before_eval(self):
        return not self.ends_before or len(self.results) < self.passes

    def after_eval(self, eval_result):
        self.results.append(eval_result)
        return self.ends_before or len(self.results) < self.passes


def executor(model_dir, listener, max_steps=4, train_steps=1, **spec):
    config = estimator_core.RunConfig(model_dir=str(model_dir), save_checkpoints_steps=train_steps)
    return old_training._TrainingExecutor(
        estimator_core.Estimator(model_fn, config=config),
        estimator_core.TrainSpec(input_fn, max_steps=max_steps),
        estimator_core.EvalSpec(input_fn, start_delay_secs=0, throttle_secs=0, **spec),
        continuous_eval_listener=listener,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ends_before", [False, True])
def test_a_listener_ends_the_training(tmp_path, ends_before):
    listener = Listener(2, ends_before)
    metrics, _ = executor(tmp_path, listener).run()
    steps = [result.metrics["global_step"] for result in listener.results]
    assert [result.status for result in listener.results] == [EVALUATED] * 2
    # The first checkpoint, of step 1, is not evaluated; without an end, there were 4.
    assert steps == [2, 3] or steps == [1, 2]
    assert metrics["global_step"] == steps[-1] + ends_before


def test_without_an_end_the_listener_sees_every_checkpoint(tmp_path):
    listener = Listener(100)
    metrics, _ = executor(tmp_path, listener).run_local()
    assert metrics["global_step"] == 4
    assert listener.results[-2].checkpoint_path.endswith("model.ckpt-4")
    assert listener.results[-1].status == NOT_NEW  # the final exports


def test_a_listener_ends_the_evaluator_at_once(tmp_path):
    executor(tmp_path, None, max_steps=2).run()
    # Training ended before max_steps, and only the listener knows it: nothing waits for a throttle.
    listener, recorder = Listener(1), Recorder()
    metrics, _ = executor(tmp_path, listener, max_steps=1000, exporters=recorder).run_evaluator()
    assert metrics["global_step"] == 2
    assert [result.status for result in listener.results] == [EVALUATED]
    assert recorder.calls == [(2, False), (2, True)]


def test_a_listener_is_told_of_a_missing_checkpoint(tmp_path):
    listener = Listener(1)
    assert executor(tmp_path, listener).run_evaluator() == (None, [])
    assert listener.results == [old_training._EvalResult(MISSING)]


def test_arguments_of_the_wrong_type(tmp_path):
    given = executor(tmp_path, None)
    with pytest.raises(TypeError, match="must have type `_ContinuousEvalListener`"):
        executor(tmp_path, object())
    with pytest.raises(TypeError, match="train_spec"):
        old_training._TrainingExecutor(given.estimator, 3, given._eval_spec)
    with pytest.raises(TypeError, match="train_hooks"):
        old_training._TrainingExecutor(given.estimator, given._train_spec, given._eval_spec, train_hooks=[3])
    with pytest.raises(TypeError, match="EvalSpec"):
        old_training._assert_eval_spec(3)
    old_training._assert_eval_spec(given._eval_spec)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((EVALUATED,), ValueError),
        ((EVALUATED, {"global_step": 1}), ValueError),
        ((EVALUATED, {"loss": 1.0}, "path"), ValueError),
        ((EVALUATED, [1], "path"), TypeError),
        ((NOT_NEW, {"global_step": 1}), ValueError),
        ((MISSING, None, "path"), ValueError),
    ],
)
def test_results_that_can_not_be(arguments, error):
    with pytest.raises(error):
        old_training._EvalResult(*arguments)


def test_the_coordinator_leaves_all_to_the_executor(tmp_path):
    given = executor(tmp_path, None)
    metrics, _ = old_training.train_and_evaluate(
        given.estimator, given._train_spec, given._eval_spec, old_training._TrainingExecutor
    )
    assert metrics["global_step"] == 4


def test_a_method_that_nothing_calls_is_named(caplog):
    with caplog.at_level(logging.WARNING, logger="estimator_core"):

        class Mine(old_training._TrainingExecutor):
            def _start_std_server(self, config):
                pass

    assert "Mine defines _start_std_server, which" in caplog.text


@pytest.mark.parametrize("name", ["run_chief", "run_worker"])
def test_a_chief_or_worker_without_a_cluster_only_trains(tmp_path, name):
    listener = Listener(1)
    given = executor(tmp_path, listener)
    assert getattr(given, name)() is None
    assert given.estimator.get_variable_value("global_step") == 4
    assert listener.results == []


def test_a_part_of_another_task_is_refused(tmp_path, as_task):
    with pytest.raises(ValueError, match="no cluster"):
        executor(tmp_path, None).run_ps()
    as_task("chief", tasks={"chief": ["localhost:1"]})
    given = executor(tmp_path, Listener(1))
    with pytest.raises(ValueError, match=r"run_worker.*Received: type 'chief'"):
        given.run_worker()
    assert given.run_chief() is None
    assert given.estimator.get_variable_value("global_step") == 4


@pytest.mark.parametrize("name", ["run", "run_local", "run_master", "run_evaluator"])
def test_each_evaluation_needs_a_checkpoint(tmp_path, name):
    given = executor(tmp_path, None, train_steps=2, every_n_steps=3)
    with pytest.raises(ValueError, match="every_n_steps"):
        getattr(given, name)()
