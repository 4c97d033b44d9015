"""A NaN loss ends training; the contract suite has it in each way of running, at each step of a call."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.hooks.intervals import find_interval
from estimator_core.hooks.nan_loss import NanLossHook, SaverUnlessNan
from tests.estimator_core.programs import AfterEachRun, examples, log_model_fn


def test_a_nan_loss_names_its_tensor_and_step_and_loses_nothing(tmp_path):
    config = est.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=1)
    estimator = est.Estimator(log_model_fn, config=config)
    with pytest.raises(est.NanLossDuringTrainingError, match=r"'log_of_x:0' at global step 3"):
        estimator.train(examples(1.0, 2.0, -1.0, 1.0))
    assert estimator.get_variable_value("global_step") == 2


class SaverOfOnesOwn(tf1.train.CheckpointSaverHook):
    """Does something after a run for which it declares no interval."""

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)


@pytest.mark.parametrize("kind", [tf1.train.CheckpointSaverHook, SaverOfOnesOwn])
def test_hooks_see_the_step_and_savers_of_the_caller_do_not_save_it(tmp_path, kind):
    seen = []
    step_of = lambda session: int(session.run(tf1.train.get_global_step(session.graph)))  # noqa: E731
    steps = AfterEachRun(lambda session: seen.append(step_of(session)))
    saver = kind(str(tmp_path / "own"), save_steps=1)
    estimator = est.Estimator(log_model_fn, str(tmp_path / "model"))
    with pytest.raises(est.NanLossDuringTrainingError, match="at global step 3"):
        estimator.train(examples(1.0, 2.0, -1.0, 1.0), hooks=[saver, steps])
    assert seen == [1, 2, 3]
    assert tf.train.latest_checkpoint(str(tmp_path / "own")).endswith("model.ckpt-2")
    assert estimator.latest_checkpoint() is None  # the caller's saver is the only one


def test_a_saver_is_due_when_it_was(tmp_path):
    saver = tf1.train.CheckpointSaverHook(str(tmp_path), save_steps=7)
    saver._timer.update_last_triggered_step(3)
    assert find_interval(SaverUnlessNan(saver, NanLossHook(None))).steps_until_due(4) == 6
    assert find_interval(SaverUnlessNan(SaverOfOnesOwn(str(tmp_path), save_steps=7), None)) is None


def test_a_loss_of_integers_is_never_nan():
    hook = NanLossHook(None)
    hook.after_run(None, tf1.train.SessionRunValues(np.int64(3), None, None))
    hook.raise_if_found()
    assert hook.steps_until_due(3) is None
