"""A batch without rows weighs nothing, whatever way the graph runs."""

import logging

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.graphs import loops


def batches_of(*sizes):
    """An input_fn that gives batches of these sizes: x = 0, 1, 2, ..."""

    def batches():
        end = 0
        for size in sizes:
            end += size
            yield {"x": np.arange(end - size, end, dtype=np.float32)}

    spec = {"x": tf.TensorSpec([None], tf.float32)}
    return lambda: tf.data.Dataset.from_generator(batches, output_signature=spec)


def mean_model_fn(features, mode):
    loss = tf.reduce_mean(features.pop("x"))  # takes the only feature out of its dict
    return est.EstimatorSpec(mode, loss=loss, train_op=tf.no_op())


def evaluate(execution, model_dir, *sizes):
    estimator = est.Estimator(mean_model_fn, str(model_dir))
    return loops.evaluate(estimator.build_program("eval", batches_of(*sizes), True, execution))


@pytest.mark.parametrize("sizes", [(2, 0, 4, 0), (0, 2, 0, 4)])
def test_the_loss_is_the_mean_over_batches_with_rows(execution, sizes, tmp_path):
    # The means of [0, 1] and [2, 3, 4, 5].
    assert evaluate(execution, tmp_path, *sizes) == {"loss": (0.5 + 3.5) / 2, "global_step": 0}


def test_an_evaluation_of_empty_batches_alone_says_so(execution, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="tensorflow"):
        assert evaluate(execution, tmp_path, 0, 0) == {"loss": 0.0, "global_step": 0}
        assert "batches of input_fn are empty" in caplog.text
        caplog.clear()
        evaluate(execution, tmp_path, 0, 2)
    assert caplog.text == ""


@pytest.mark.more
@pytest.mark.parametrize("steps_per_session_run", [1, 5])
def test_training_of_a_premade_model_passes_them_over(steps_per_session_run, tmp_path):
    # 2.15 has the same weights after these batches as without the empty ones, and counts their steps.
    def weights(*sizes):
        config = est.RunConfig(
            str(tmp_path / str(sizes)), tf_random_seed=1, steps_per_session_run=steps_per_session_run
        )
        columns = [tf.feature_column.numeric_column("x")]
        model = est.DNNRegressor([3], columns, optimizer="SGD", batch_norm=True, config=config)
        model.train(lambda: batches_of(*sizes)().map(lambda features: (features, features["x"])))
        names = model.get_variable_names()
        return {name: model.get_variable_value(name).tolist() for name in names}

    expected, found = weights(2, 4, 2), weights(2, 0, 4, 0, 0, 2, 0)
    assert (expected.pop("global_step"), found.pop("global_step")) == (3, 7)
    counts = {name for name in expected if name.endswith("/iter")}  # steps of the optimizer
    assert {name for name in expected if expected[name] != found[name]} <= counts


@pytest.mark.parametrize("steps_per_session_run", [1, 5])
def test_a_mean_loss_of_the_users_ends_training_at_an_empty_batch(steps_per_session_run, tmp_path):
    def model_fn(features, mode):
        loss = tf.reduce_mean(tf.compat.v1.get_variable("weight", []) * features["x"])
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        step = tf.compat.v1.train.get_global_step()
        return est.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step))

    # As in 2.15.
    config = est.RunConfig(str(tmp_path), steps_per_session_run=steps_per_session_run)
    with pytest.raises(est.NanLossDuringTrainingError, match="at global step 2"):
        est.Estimator(model_fn, config=config).train(batches_of(2, 0, 2, 2))
