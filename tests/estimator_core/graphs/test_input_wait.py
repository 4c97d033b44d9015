"""The share of a training that was waiting for its input."""

import logging
import time

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.graphs import loops
from tests.estimator_core.programs import batch_of, counting, descent, scalars_of


def model_fn(features, labels, mode, params):
    """A step multiplies matrices of a size."""
    x = features["x"]
    weight = tf1.get_variable("weight", initializer=1.0)
    matrix = tf.ones([params["size"]] * 2) * x[0]
    busy = tf.reduce_sum(matrix @ matrix) * 1e-30
    loss = tf.reduce_mean(tf.square(weight * x - labels)) + busy
    return est.EstimatorSpec(mode, loss=loss, train_op=descent(loss, 1e-9))


def input_fn(secs):
    def batch(index):
        time.sleep(secs)
        return np.float32([1, 2])

    def read(index):
        x = tf.numpy_function(batch, [index], tf.float32)
        x.set_shape([2])
        return {"x": x}, x

    return lambda: tf.data.Dataset.range(10_000).map(read)


def trained(model_dir, input_fn, size=10, model_fn=model_fn, steps=40):
    """Trains for 200 steps; returns the share that was written, by step."""
    config = est.RunConfig(model_dir=str(model_dir), steps_per_session_run=steps)
    est.Estimator(model_fn, config=config, params={"size": size}).train(input_fn, max_steps=200)
    return scalars_of(model_dir).get("input_wait_share", {})


@pytest.mark.more
@pytest.mark.parametrize(("secs", "size", "low", "high"), [(0.01, 10, 0.5, 1.0), (0.0, 900, 0.0, 0.3)])
def test_it_is_logged_and_written(tmp_path, caplog, monkeypatch, secs, size, low, high):
    monkeypatch.setattr(loops, "_MIN_SECS_TO_LOG_WAIT", 1.0)
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        ((step, share),) = trained(tmp_path, input_fn(secs), size).items()
    assert step == 200
    assert low <= share <= high
    (line,) = [message for message in caplog.messages if "waited for its input" in message]
    assert line.startswith(f"Training waited for its input {100 * share:.0f} % of the time")
    assert ("batch before map" in line) == (share >= 0.3)


def test_short_trainings_log_nothing(tmp_path, caplog):
    """About two seconds: there are programs that compare logs."""
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        assert len(trained(tmp_path, input_fn(0.01))) == 1
    assert "waited for its input" not in caplog.text


def test_nothing_is_said_of_less_than_a_second(tmp_path, caplog):
    def cheap_model_fn(features, labels, mode, params):
        return counting(mode, tf.reduce_sum(features["x"]))

    constant = batch_of({"x": [1.0, 2.0]}, [1.0, 2.0], repeat=None)
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        assert trained(tmp_path, constant, model_fn=cheap_model_fn, steps=50) == {}
    assert "waited for its input" not in caplog.text


def test_nothing_is_told_of_several_iterators(tmp_path):
    """Each may wait for the other, so that the time of a step without waiting is unknown."""

    def two():
        both = [tf1.data.make_one_shot_iterator(input_fn(0.005)()).get_next() for _ in range(2)]
        (features, labels), (_, others) = both
        return features, labels + 0.0 * others

    assert trained(tmp_path, two) == {}
