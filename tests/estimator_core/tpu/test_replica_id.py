"""`xla.replica_id()` on virtual shards: the number of the shard, as contrastive models use it."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

import estimator_core as est
from estimator_core import tf1
from tests.estimator_core import shard_programs
from tests.estimator_core.shard_programs import shared_descent

NUM_SHARDS, BATCH = 3, 6
ROWS = np.array([[1.0], [2.0], [4.0], [7.0], [11.0], [16.0]], np.float32)


def replica_id():
    return tf.cast(tf.cast(xla.replica_id(), tf.uint32), tf.int32)


def gathered(tensor):
    """Returns the tensors of all shards, `[num_shards * rows, columns]`, on each of them."""
    scattered = tf.scatter_nd([[replica_id()]], tensor[tf.newaxis], [NUM_SHARDS, *tensor.shape])
    return tf.reshape(tf1.tpu.cross_replica_sum(scattered), [-1, tensor.shape[-1]])


def contrastive_model_fn(features, labels, mode, params):
    """Each row is compared with those of all shards; its own one is number `2 * shard + row`."""
    hidden = features * tf1.get_variable("weight", [], initializer=tf.constant_initializer(0.1))
    distances = tf.abs(hidden - tf.transpose(gathered(hidden)))  # [2, 6]
    own = tf.one_hot(tf.range(2) + 2 * replica_id(), BATCH)
    loss = tf.reduce_sum(distances * (1.0 - own)) + 100.0 * tf.reduce_sum(distances * own)
    if mode == "infer":
        predictions = {"shard": tf.fill([2], xla.replica_id()), "distance": distances}
        return est.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    return est.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, 0.001))


def estimator_of(model_fn, folder):
    sizes = {"train_batch_size": BATCH, "predict_batch_size": BATCH}
    return shard_programs.estimator(folder, model_fn, NUM_SHARDS, {"iterations_per_loop": 1}, **sizes)


def input_fn(params):
    rows = tf.data.Dataset.from_tensor_slices((ROWS, ROWS))
    return rows.batch(params["batch_size"], drop_remainder=True)


def test_a_model_gathers_over_the_shards_by_their_numbers(tmp_path):
    estimator = estimator_of(contrastive_model_fn, tmp_path).train(input_fn, steps=1)
    differences = np.abs(ROWS - ROWS.T)
    # The mean over shards of d(loss)/dw: each shard also gets the gradients of its rows on the others.
    slope = differences.sum() / NUM_SHARDS
    rows = list(estimator.predict(input_fn))
    weight = estimator.get_variable_value("weight")
    assert [int(row["shard"]) for row in rows] == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose([row["distance"] for row in rows], weight * differences, rtol=1e-5)
    assert (0.1 - weight) / 0.001 == pytest.approx(slope, rel=1e-4)


def test_an_exported_model_is_copy_0(tmp_path):
    def model_fn(features, labels, mode, params):
        if mode == "infer":
            shard = tf.fill([tf.shape(features)[0]], replica_id())
            return est.tpu.TPUEstimatorSpec(mode, predictions={"shard": shard})
        return contrastive_model_fn(features, labels, mode, params)

    estimator = estimator_of(model_fn, tmp_path / "model").train(input_fn, steps=1)

    def receiver_fn():
        rows = tf1.placeholder(tf.float32, [None, 1])
        return est.export.TensorServingInputReceiver(rows, rows)

    path = estimator.export_saved_model(str(tmp_path / "exported"), receiver_fn).decode()
    serve = tf.saved_model.load(path, tags=["serve"]).signatures["serving_default"]
    assert serve(input=tf.ones([2, 1]))["shard"].numpy().tolist() == [0, 0]


def test_a_function_that_reads_the_number_is_refused(tmp_path):
    @tf.function
    def shard_times(values):
        return values * tf.cast(xla.replica_id(), tf.float32)

    def model_fn(features, labels, mode, params):
        return contrastive_model_fn(shard_times(features), labels, mode, params)

    with pytest.raises(ValueError, match=r"can't call replica_id\(\).*shard_times"):
        estimator_of(model_fn, tmp_path).train(input_fn, steps=1)
