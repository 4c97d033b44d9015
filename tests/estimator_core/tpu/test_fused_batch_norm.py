"""Fused batch normalization on shards: in training its result does not depend on the moving averages."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tf1
from tests.estimator_core import shard_programs
from tests.estimator_core.programs import assert_same, values_of

MOMENTUM, EPSILON, RATE = 0.9, 1e-3, 0.25
IMAGES = np.random.RandomState(3).randn(8, 4, 4, 2).astype(np.float32) * [2.0, 0.5] + [1.0, -3.0]
LABELS = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]


def model_fn(features, labels, mode, params):
    start = {"mean": 0.0, "variance": 1.0}
    averages = {
        name: tf1.get_variable(name, [2], initializer=tf.constant_initializer(value), trainable=False)
        for name, value in start.items()
    }
    scale = tf1.get_variable("scale", [2], initializer=tf.constant_initializer(1.5))
    offset = tf1.get_variable("offset", [2], initializer=tf.constant_initializer(0.5))
    weights = tf1.get_variable("weights", [2, 1], initializer=tf.constant_initializer(0.2))
    net, moments = params["how"](features, scale, offset, averages)
    output = tf.reduce_mean(tf.square(net), [1, 2]) @ weights
    loss = tf.reduce_mean(tf.square(output - labels))
    optimizer = est.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(RATE))
    updates = [
        averages[name].assign(MOMENTUM * averages[name] + (1 - MOMENTUM) * moment)
        for name, moment in moments.items()
    ]
    with tf.control_dependencies(updates):
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return est.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def fused(features, scale, offset, averages, is_training=True, factor=1.0):
    """As tf_keras's BatchNormalization: the op gets the averages, and in training ignores them."""
    settings = {"epsilon": EPSILON, "exponential_avg_factor": factor, "is_training": is_training}
    out = tf.raw_ops.FusedBatchNormV3(x=features, scale=scale, offset=offset, **averages, **settings)
    return out.y, {"mean": out.batch_mean, "variance": out.batch_variance}


def by_hand(features, scale, offset, averages):
    del averages
    mean, variance = tf.nn.moments(features, [0, 1, 2])
    count = 2 * 4 * 4  # of a shard's batch; the fused operation returns the unbiased variance
    moments = {"mean": mean, "variance": variance * count / (count - 1)}
    return tf.nn.batch_normalization(features, mean, variance, offset, scale, EPSILON), moments


def with_shape_of_averages(features, scale, offset, averages):
    net, moments = by_hand(features, scale, offset, averages)
    return net + tf.zeros_like(averages["mean"]), moments


def by_averages(features, scale, offset, averages):
    _, moments = by_hand(features, scale, offset, averages)
    net, _ = fused(features, scale, offset, averages, is_training=False)
    return net, moments


def by_new_averages(features, scale, offset, averages):
    """Normalizes by averages that the operation has moved."""
    _, moved = fused(features, scale, offset, averages, factor=0.25)
    return (features - moved["mean"]) * scale + offset, moved


def trained(how, folder, steps=2):
    loop = {"iterations_per_loop": steps}
    estimator = shard_programs.estimator(folder, model_fn, config=loop, params={"how": how})

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((IMAGES.astype(np.float32), LABELS))
        return dataset.batch(params["batch_size"], drop_remainder=True).repeat()

    values = values_of(estimator.train(input_fn, steps=steps))
    return {name: values[name] for name in ("scale", "offset", "weights", "mean", "variance")}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", [fused, with_shape_of_averages])
def test_it_trains_as_normalization_by_hand_does(tmp_path, how):
    values = trained(how, tmp_path / "model")
    assert_same(values, trained(by_hand, tmp_path / "by hand"), rtol=1e-4, atol=1e-5)
    # The averages are the first shard's: rows 0 and 1 of each batch of four.
    means = [IMAGES[first : first + 2].mean((0, 1, 2)) for first in (0, 4)]
    moving = (1 - MOMENTUM) * (MOMENTUM * means[0] + means[1])
    np.testing.assert_allclose(values["mean"], moving, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", [by_averages, by_new_averages])
def test_normalization_by_the_moving_averages_is_refused(tmp_path, how):
    with pytest.raises(ValueError, match=r"none can keep its own value.*'mean:0'"):
        trained(how, tmp_path)
