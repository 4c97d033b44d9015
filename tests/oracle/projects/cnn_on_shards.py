"""A residual CNN for TPUs with fused batch normalization, which `main(use_tpu=True)` trains on shards.

Each shard normalizes by its own part of the batch, and the first one moves the averages. On one device, the
program therefore builds a tower for each part.
"""

import numpy as np
import tensorflow.compat.v1 as tf

SHARDS, MOMENTUM, EPSILON = 2, 0.8, 1e-3
RNG = np.random.RandomState(41)
LABELS = RNG.randint(0, 3, 48).astype(np.int32)
PATTERNS = RNG.normal([1.5, -2.0], 1.0, [3, 6, 6, 2])
IMAGES = (PATTERNS[LABELS] + 0.5 * RNG.randn(48, 6, 6, 2)).astype(np.float32)
KERNELS = {
    "stem": (0.4 * RNG.randn(3, 3, 2, 4)).astype(np.float32),
    "block": (0.3 * RNG.randn(3, 3, 4, 4)).astype(np.float32),
    "logits": (0.4 * RNG.randn(4, 3)).astype(np.float32),
}


def batch_norm(inputs, is_training, moves_averages):
    def variable(name, value, trainable):
        initializer = tf.constant_initializer(value)
        return tf.get_variable(name, [inputs.shape[3]], initializer=initializer, trainable=trainable)

    scale, offset = variable("gamma", 1.0, True), variable("beta", 1.0, True)
    averages = [variable("moving_mean", 0.0, False), variable("moving_variance", 1.0, False)]
    outputs, *moments = tf.nn.fused_batch_norm(
        inputs,
        scale,
        offset,
        mean=None if is_training else averages[0],
        variance=None if is_training else averages[1],
        epsilon=EPSILON,
        is_training=is_training,
    )
    if moves_averages:
        for average, moment in zip(averages, moments, strict=True):
            update = average.assign_sub((average - moment) * (1 - MOMENTUM))
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return outputs


def logits_of(images, is_training, moves_averages=False):
    net = images
    for name in ("stem", "block"):
        with tf.variable_scope(name):
            convolved = tf.nn.conv2d(net, tf.get_variable("kernel", initializer=KERNELS[name]), 1, "SAME")
            outputs = tf.nn.elu(batch_norm(convolved, is_training, moves_averages))
            net = outputs if name == "stem" else net + outputs
    return tf.matmul(tf.reduce_mean(net, [1, 2]), tf.get_variable("logits", initializer=KERNELS["logits"]))


def metric_fn(labels, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return {
        "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1)),
        "cross_entropy": tf.metrics.mean(losses),
    }


def model_fn(features, labels, mode, params):
    if mode == tf.estimator.ModeKeys.PREDICT:
        probabilities = tf.nn.softmax(logits_of(features, is_training=False))
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"probabilities": probabilities})
    if mode == tf.estimator.ModeKeys.EVAL:
        logits = logits_of(features, is_training=False)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    towers = 1 if params["use_tpu"] else SHARDS
    losses = []
    for images, classes in zip(tf.split(features, towers), tf.split(labels, towers), strict=True):
        with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
            logits = logits_of(images, is_training=True, moves_averages=not losses)
        losses.append(tf.losses.sparse_softmax_cross_entropy(classes, logits))
    loss = tf.add_n(losses) / towers
    optimizer = tf.train.MomentumOptimizer(0.05, 0.5)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def main(use_tpu=False):
    tpu_config = tf.estimator.tpu.TPUConfig(iterations_per_loop=5, num_shards=SHARDS)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(tpu_config=tpu_config, model_dir="model"),
        params={},
        use_tpu=use_tpu,
        train_batch_size=16,
        eval_batch_size=24,
        predict_batch_size=8,
    )
    evaluations = []
    for max_steps in (5, 10):
        estimator.train(input_fn, max_steps=max_steps)
        evaluations.append(estimator.evaluate(input_fn, steps=2))
    values = {
        f"{layer}/{name}": estimator.get_variable_value(f"{layer}/{name}")
        for layer in ("stem", "block")
        for name in ("beta", "gamma", "kernel", "moving_mean", "moving_variance")
    }
    for layer in ("stem", "block"):  # a mean is as exact as its values are large
        values[f"{layer}/moving_mean"] /= np.sqrt(values[f"{layer}/moving_variance"])
    predictions = estimator.predict(lambda params: input_fn(params).take(1))
    return {
        "evaluations": evaluations,
        "probabilities": [row["probabilities"].tolist() for row in predictions],
        # Some weights of a kernel are close to 0.
        "variables": {
            name: float(np.linalg.norm(value)) if name.endswith("kernel") else value.tolist()
            for name, value in values.items()
        },
    }
