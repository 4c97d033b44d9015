"""A shard is all the cores of its copy of the model."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.shards.shards import place_on_shard
from tests.estimator_core.shard_programs import input_fn, predict_input_fn
from tests.estimator_core.shard_programs import model_fn as on_any_core


def on_cores(*cores):
    """The model of `shard_programs`, whose halves are on two cores."""

    def model_fn(features, labels, mode, params):
        with tf.device(tf1.tpu.core(cores[0])):
            weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
            features = {"x": features["x"] + 0.0 * weight}
        with tf.device(tf1.tpu.core(cores[1])), tf1.variable_scope("", reuse=True):
            return on_any_core(features, labels, mode, params)

    return model_fn


@pytest.mark.more
def test_what_is_on_cores_computes_the_same(make_sharded):
    """Training, evaluation and prediction; no session has to find another device for an operation."""
    several = make_sharded(
        on_cores(0, 1),
        config={"num_cores_per_replica": 2, "iterations_per_loop": 1},
        session_config=tf1.ConfigProto(allow_soft_placement=False),
    ).train(input_fn, steps=2)
    # -30 * 0.125 is the first step, from the labels 2, 4, 6, 8; in the second the weight is 3.75, and the
    # gradient is 2 * (3.75 - 2) * mean(25, 36, 49, 64) = 152.25.
    assert several.get_variable_value("weight") == 3.75 - 0.125 * 152.25
    expected = (3.75 - 0.125 * 152.25 - 2) * np.arange(1, 5)
    assert several.evaluate(input_fn, steps=1)["mae"] == pytest.approx(np.abs(expected).mean())
    assert [row["x"] for row in several.predict(predict_input_fn)] == list(range(1, 11))


@pytest.mark.parametrize(("cores", "core"), [(None, 1), (2, 2), (4, 7)])
def test_a_core_that_a_copy_does_not_have(make_sharded, cores, core):
    model_fn = on_cores(0, core)
    with pytest.raises(ValueError, match=re.escape(f"tpu.core({core}) for operation")) as refused:
        make_sharded(model_fn, config={"num_cores_per_replica": cores}).train(input_fn, steps=1)
    assert f"num_cores_per_replica={cores or 1}" in str(refused.value)
    assert f"the cores 0 to {(cores or 1) - 1}" in str(refused.value)


def test_cores_within_functions(graph):
    @tf.function
    def on_core(x):
        with tf.device(tf1.tpu.core(1)):
            return tf.add(x, 1.0, name="one_more")

    result = on_core(tf.constant(2.0))
    with pytest.raises(ValueError, match=r"tpu.core\(1\) for operation .*one_more"):
        place_on_shard(graph.get_operations(), 1)
    place_on_shard(graph.get_operations(), 2)
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(config=config) as session:
        assert session.run(result) == 3.0


def test_a_task_of_a_device_stays(graph):
    with tf.device("/job:worker/task:2/" + tf1.tpu.core(0)):
        constant = tf.constant(1.0)
    place_on_shard(graph.get_operations(), 1)
    assert constant.device == "/job:worker/task:2"
