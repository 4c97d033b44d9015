"""Contrasts each example with those of all shards, which it gathers by replica_id.

`main(use_tpu=True)` runs it on shards, where it trains as one device does on the whole batch.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.compiler.tf2xla.python import xla

SHARDS = 4
RNG = np.random.RandomState(31)
A = RNG.randn(48, 5).astype(np.float32)
B = (A + 0.3 * RNG.randn(48, 5)).astype(np.float32)
KERNEL = (0.4 * RNG.randn(5, 3)).astype(np.float32)


def gathered(rows, num_shards):
    """Returns the rows of all shards, and the number of this shard's first row."""
    if num_shards == 1:
        return rows, 0
    shard = tf.cast(tf.cast(xla.replica_id(), tf.uint32), tf.int32)
    shape = [num_shards, *rows.shape.as_list()]
    placed = tf.scatter_nd([[shard]], [rows], shape)
    everything = tf.tpu.cross_replica_sum(placed)
    return tf.reshape(everything, [-1, shape[2]]), shard * shape[1]


def model_fn(features, labels, mode, params):
    num_shards = SHARDS if params["use_tpu"] else 1
    kernel = tf.get_variable("kernel", initializer=KERNEL)
    a = tf.nn.l2_normalize(tf.matmul(features["a"], kernel), 1)
    b = tf.nn.l2_normalize(tf.matmul(features["b"], kernel), 1)
    all_b, start = gathered(b, num_shards)
    logits = tf.matmul(a, all_b, transpose_b=True) / 0.5
    targets = start + tf.range(a.shape[0])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    loss = tf.reduce_mean(losses)
    optimizer = tf.train.MomentumOptimizer(0.3, 0.5)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(({"a": A, "b": B}, np.zeros(48)))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def main(use_tpu=False):
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(
            tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=5, num_shards=SHARDS), model_dir="model"
        ),
        use_tpu=use_tpu,
        train_batch_size=16,
    )
    kernels = []
    for max_steps in (5, 20):
        estimator.train(input_fn, max_steps=max_steps)
        kernels.append(estimator.get_variable_value("kernel").tolist())
    return {"kernels": kernels}
