"""N shards train as one device does with the same global batch, and evaluate and predict the same."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu, v1
from tests.estimator_core import shard_programs
from tests.estimator_core.programs import Fetching, assert_same, values_of

BATCH_SIZE = 8
RANDOM = np.random.RandomState(0)
NUMBERS = RANDOM.randn(64, 3).astype(np.float32)
WORDS = RANDOM.randint(0, 20, 64)  # some of them several times in a batch
CLASSES = (NUMBERS.sum(axis=1) + np.where(WORDS % 2, 0.5, -0.5) > 0).astype(np.int64)


def input_fn(mode):
    """All examples again and again; in prediction, once."""
    dataset = tf.data.Dataset.from_tensor_slices(({"x": NUMBERS, "word": WORDS}, CLASSES))
    if mode != est.ModeKeys.PREDICT:
        dataset = dataset.repeat()
    return dataset.batch(BATCH_SIZE, drop_remainder=True)


def tpu_input_fn(mode, params):
    return input_fn(mode)


def logits_of(features):
    table = tf1.get_variable("table", [20, 4], initializer=tf1.random_normal_initializer(seed=1))
    inputs = tf.concat([features["x"], tf.nn.embedding_lookup(table, features["word"])], axis=1)
    kernel = tf1.get_variable("kernel", [7, 1], initializer=tf1.random_normal_initializer(seed=2))
    return tf.squeeze(inputs @ kernel, axis=1)


def loss_of(logits, labels):
    labels = tf.cast(labels, tf.float32)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))


def metric_fn(labels, logits):
    return {
        "accuracy": tf1.metrics.accuracy(labels, logits > 0),
        "auc": tf1.metrics.auc(labels, tf.sigmoid(logits)),
    }


def tpu_model_fn(optimizer):
    """A model_fn of TPUEstimator, whose optimizer is `optimizer()`."""

    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        if mode == est.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
        loss = loss_of(logits, labels)
        if mode == est.ModeKeys.EVAL:
            metrics = (metric_fn, {"labels": labels, "logits": logits})
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        train_op = minimized(tpu.CrossShardOptimizer(optimizer()), loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def minimized(optimizer, loss):
    return optimizer.minimize(loss, tf1.train.get_global_step())


def for_tpu(optimizer):
    """A function of the model_dir and the number of shards, 0 for one device, that makes the Estimator."""

    def make(model_dir, num_shards):
        settings = {f"{mode}_batch_size": BATCH_SIZE for mode in ("train", "eval", "predict")}
        settings["use_tpu"] = num_shards > 0
        loop, model_fn = {"iterations_per_loop": 1}, tpu_model_fn(optimizer)
        return shard_programs.estimator(model_dir, model_fn, num_shards or 1, loop, **settings)

    return make


def converted(make_estimator):
    """The same for an Estimator that was not written for TPUs."""

    def make(model_dir, num_shards):
        estimator = make_estimator(est.RunConfig(model_dir=model_dir))
        if not num_shards:
            return estimator
        config = tpu.TPUConfig(iterations_per_loop=1, num_shards=num_shards)
        return tpu.to_tpu_estimator(estimator, *[BATCH_SIZE] * 3, config=config)

    return make


def custom(optimizer, minimize=minimized):
    """An Estimator whose model_fn knows nothing of shards."""

    def model_fn(features, labels, mode):
        logits = logits_of(features)
        if mode == est.ModeKeys.PREDICT:
            return est.EstimatorSpec(mode, {"logits": logits})
        loss = loss_of(logits, labels)
        if mode == est.ModeKeys.EVAL:
            return est.EstimatorSpec(mode, loss=loss, eval_metric_ops=metric_fn(labels, logits))
        return est.EstimatorSpec(mode, loss=loss, train_op=minimize(optimizer(), loss))

    return converted(lambda config: est.Estimator(model_fn, config=config))


def with_gradients_of_tensorflow(optimizer, loss):
    """They are averaged when they are applied, where `compute_gradients` was not asked."""
    variables = tf1.trainable_variables()
    gradients = [3.0 * tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
    return optimizer.apply_gradients(zip(gradients, variables, strict=True), tf1.train.get_global_step())


def with_clipped_pairs(optimizer, loss):
    pairs = optimizer.compute_gradients(loss)
    gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.1)
    variables = [variable for _, variable in pairs]
    return optimizer.apply_gradients(zip(gradients, variables, strict=True), tf1.train.get_global_step())


def with_keras(optimizer, loss):
    variables = tf1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    with tf.control_dependencies([optimizer.apply_gradients(zip(gradients, variables, strict=True))]):
        return tf1.train.get_global_step().assign_add(1)


def columns():
    words = tf.feature_column.categorical_column_with_identity("word", 20)
    return [tf.feature_column.numeric_column("x", shape=[3]), tf.feature_column.embedding_column(words, 4)], [
        words
    ]


def dnn(config):
    return est.DNNClassifier([5], columns()[0], config=config)


def summed_dnn(config):
    """As tf.compat.v1 has it: the loss is the sum of the losses of the batch."""
    return v1.DNNClassifier([5], columns()[0], config=config)


def linear(config):
    return est.LinearClassifier(columns()[1], config=config)


def wide_and_deep(config):
    return est.DNNLinearCombinedClassifier(
        linear_feature_columns=columns()[1],
        dnn_feature_columns=columns()[0],
        dnn_hidden_units=[5],
        config=config,
    )


def keras(config):
    """A compiled Keras model, as in the question whether it can be made a TPUEstimator."""
    x, word = tf.keras.Input([3], name="x"), tf.keras.Input([], dtype="int64", name="word")
    embedded = tf.keras.layers.Embedding(20, 4)(word)
    hidden = tf.keras.layers.Dense(5, "tanh")(tf.keras.layers.Concatenate()([x, embedded]))
    model = tf.keras.Model(
        {"x": x, "word": word}, tf.keras.layers.Dense(1, activation="sigmoid", name="probability")(hidden)
    )
    model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), "binary_crossentropy", metrics=["accuracy"])
    return est.model_to_estimator(model, config=config)


def adam():
    return tf1.train.AdamOptimizer(0.05)


def momentum():
    """Its updates of rows that no example looks up are left out, on one device and on shards."""
    return tf1.train.MomentumOptimizer(0.1, 0.9)


def keras_adam():
    return tf.keras.optimizers.Adam(0.05)


ESTIMATORS = {
    "tpu_adam": for_tpu(adam),
    "adam": custom(adam),
    "momentum": custom(momentum),
    "gradients": custom(momentum, with_gradients_of_tensorflow),
    "clipped_pairs": custom(momentum, with_clipped_pairs),
    "keras_adam": custom(keras_adam, with_keras),
    "dnn": converted(dnn),
    "summed_dnn": converted(summed_dnn),
    "linear": converted(linear),
    "wide_and_deep": converted(wide_and_deep),
    "keras": converted(keras),
}


def compare(make, tmp_path, num_shards, steps):
    """Trains on one device and on shards, from the same start, and compares all results."""
    start = str(tmp_path / "one")
    one = make(start, 0)
    takes = tpu_input_fn if isinstance(one, tpu.TPUEstimator) else input_fn
    one.train(takes, steps=1)
    shutil.copytree(start, str(tmp_path / "shards"))
    shards = make(str(tmp_path / "shards"), num_shards)
    losses = [Fetching(), Fetching()]
    one.train(takes, losses[:1], steps=steps)
    shards.train(takes, losses[1:], steps=steps)
    np.testing.assert_allclose(losses[0].values, losses[1].values, rtol=1e-5, atol=1e-5)
    values, expected = values_of(shards), values_of(one)
    for each in (values, expected):  # the objects of the variables, in checkpoints of Keras models
        each.pop("_CHECKPOINTABLE_OBJECT_GRAPH", None)
    assert_same(values, expected, rtol=1e-5, atol=1e-5)
    assert_same(shards.evaluate(takes, steps=5), one.evaluate(takes, steps=5), rtol=1e-5, atol=1e-5)
    rows = list(shards.predict(takes)), list(one.predict(takes))
    assert len(rows[0]) == len(rows[1]) == 64
    for shard_row, row in zip(*rows, strict=True):
        for name, value in row.items():
            if value.dtype.kind == "f":
                np.testing.assert_allclose(shard_row[name], value, rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(shard_row[name], value)


@pytest.mark.more
@pytest.mark.parametrize(("name", "num_shards"), [("tpu_adam", 4), ("dnn", 4), ("momentum", 2), ("keras", 2)])
def test_shards_are_as_one_device(name, num_shards, tmp_path):
    compare(ESTIMATORS[name], tmp_path, num_shards, steps=4)


@pytest.mark.slow
@pytest.mark.parametrize("num_shards", [1, 2, 4, 8])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_any_number_of_shards_is_as_one_device(name, num_shards, tmp_path):
    compare(ESTIMATORS[name], tmp_path, num_shards, steps=100)
