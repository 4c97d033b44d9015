"""Training and evaluation in turns: the calls and their order."""

import os

import tensorflow as tf

import estimator_core as est
from estimator_core.training.in_turns import train_and_evaluate_in_turns

tf1 = tf.compat.v1


def evaluated_steps(estimator):
    return sorted(est.summaries.read_evaluations(estimator.eval_dir()))


def test_it_evaluates_at_checkpoints_and_at_the_end(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=2)
    metrics, exports = train_and_evaluate_in_turns(
        estimator, est.TrainSpec(input_fn, max_steps=5), est.EvalSpec(input_fn, steps=1, throttle_secs=0)
    )
    assert evaluated_steps(estimator) == [2, 4, 5]
    assert metrics["global_step"] == 5
    assert metrics["loss"] == (2 / 2**5) ** 2
    assert exports == []


def test_a_saver_hook_of_the_caller_s_evaluates_in_its_own_training_alone(make_estimator, input_fn, tmp_path):
    estimator = make_estimator()
    saver = tf1.train.CheckpointSaverHook(os.path.join(tmp_path, "model"), save_steps=3)
    train_and_evaluate_in_turns(
        estimator,
        est.TrainSpec(input_fn, max_steps=4, hooks=[saver]),
        est.EvalSpec(input_fn, steps=1, throttle_secs=0),
    )
    assert evaluated_steps(estimator) == [3, 4]
    estimator.train(input_fn, hooks=[saver], steps=7)
    assert evaluated_steps(estimator) == [3, 4]
