"""Programs of Keras 2's time: `tf.compat.v1.layers`, `tf.keras` layers and `tf.keras.optimizers.legacy`.

On today's TensorFlow they need tf_keras and TF_USE_LEGACY_KERAS=1. A parameter that a batch
normalization cancels is left out, or has an activation in between: the bias of the layer before, and
the shift of another one. Its gradient would be noise around zero, which Adam scales up.
"""

import functools

import numpy as np
import tensorflow as tf

from tests.oracle.programs.data import BATCH_SIZE, FEATURES, FLOOR, LABELS, NUM_EXAMPLES, PLACE, SIZE, dense
from tests.oracle.programs.program import Program

tf1 = tf.compat.v1

IMAGES = np.random.RandomState(5).rand(NUM_EXAMPLES, 6, 6, 1).astype(np.float32)
DIGITS = (IMAGES[:, :3].sum(axis=(1, 2, 3)) > IMAGES[:, 3:].sum(axis=(1, 2, 3))).astype(np.int64)
SIZE_AND_PLACE = np.concatenate([FEATURES["size"][:, np.newaxis], FEATURES["place"]], axis=1)


def _batches(features, labels):
    def inputs(repeat=None):
        def input_fn():
            dataset = tf.data.Dataset.from_tensor_slices((features, labels))
            return dataset.repeat(repeat).batch(BATCH_SIZE, drop_remainder=True)

        return input_fn

    return inputs


def _concatenated(features):
    return tf.concat([tf.expand_dims(features["size"], 1), features["place"]], axis=1)


def layers_model_fn(e, features, labels, mode):
    """Digits by convolution: every kind of layer, with the updates of batch normalization."""
    training = mode == e.ModeKeys.TRAIN
    layers = tf1.layers
    images = tf.reshape(features["image"], [-1, 6, 6, 1])
    outputs = layers.conv2d(images, 3, kernel_size=[3, 3], padding="same", use_bias=False)
    outputs = tf.nn.relu(layers.batch_normalization(outputs, training=training, momentum=0.9))
    outputs = layers.max_pooling2d(outputs, pool_size=[2, 2], strides=2)
    outputs = layers.dense(
        layers.flatten(outputs), 4, use_bias=False, kernel_regularizer=tf.keras.regularizers.l2(0.01)
    )
    outputs = tf.nn.relu(layers.batch_normalization(outputs, training=training, name="norm"))
    outputs = layers.dropout(outputs, rate=0.0, training=training)
    logits = layers.dense(outputs, 2, name="logits")
    predictions = {"classes": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == e.ModeKeys.PREDICT:
        classify = e.export.PredictOutput(predictions)
        return e.EstimatorSpec(mode, predictions=predictions, export_outputs={"classify": classify})
    tf1.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    loss = tf1.losses.get_total_loss()
    if mode == e.ModeKeys.EVAL:
        accuracy = tf1.metrics.accuracy(labels=labels, predictions=predictions["classes"])
        return e.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        optimizer = tf1.train.AdamOptimizer(0.003)
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return e.EstimatorSpec(mode, loss=loss, train_op=train_op)


def get_updates_model_fn(e, features, labels, mode):
    """A Keras model, optimizer and metrics, put together by their methods for graphs."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(4, use_bias=False, kernel_regularizer="l2", name="hidden"),
            layers.BatchNormalization(momentum=0.9, name="norm"),
            layers.Activation("relu"),
            layers.Dropout(0.0),
            layers.Dense(1, name="price"),
        ]
    )
    inputs = _concatenated(features)
    prediction = model(inputs, training=mode == e.ModeKeys.TRAIN)
    if mode == e.ModeKeys.PREDICT:
        return e.EstimatorSpec(mode, predictions={"price": prediction})
    labels = tf.expand_dims(labels, 1)
    loss = tf.reduce_mean(tf.keras.losses.mse(labels, prediction)) + tf.add_n(model.losses)
    if mode == e.ModeKeys.EVAL:
        metric = tf.keras.metrics.MeanAbsoluteError()
        metric.update_state(labels, prediction)
        return e.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mae": metric})
    optimizer = tf.keras.optimizers.legacy.Adam(0.01)
    optimizer.iterations = tf1.train.get_or_create_global_step()
    update_ops = model.get_updates_for(None) + model.get_updates_for(inputs)
    with tf.control_dependencies(update_ops):
        train_op = optimizer.get_updates(loss, model.trainable_variables)[0]
    return e.EstimatorSpec(mode, loss=loss, train_op=train_op)


def head_model_fn(e, features, labels, mode):
    """A head that is given the optimizer, and the updates of a batch normalization."""
    layers = tf.keras.layers
    hidden = layers.Dense(4, use_bias=False, name="hidden")
    norm = layers.BatchNormalization(momentum=0.9, name="norm")
    last = layers.Dense(1, name="logits")
    normalized = norm(hidden(_concatenated(features)), training=mode == e.ModeKeys.TRAIN)
    logits = last(tf.nn.relu(normalized))
    optimizer = tf.keras.optimizers.legacy.RMSprop(0.01, momentum=0.5)
    optimizer.iterations = tf1.train.get_or_create_global_step()
    return e.BinaryClassHead().create_estimator_spec(
        features,
        mode,
        logits,
        labels=labels,
        optimizer=optimizer,
        trainable_variables=[v for part in (hidden, norm, last) for v in part.trainable_variables],
        update_ops=norm.updates,
    )


def _estimator(model_fn, e, config):
    def with_e(features, labels, mode):
        return model_fn(e, features, labels, mode)

    return e.Estimator(with_e, config=config)


def _with_optimizer_object(e, config):
    optimizer = tf.keras.optimizers.legacy.Adagrad(0.05)
    return e.DNNClassifier([4], [SIZE, PLACE], optimizer=optimizer, config=config)


def _with_optimizer_functions(e, config):
    def decayed_adam():
        step = tf1.train.get_global_step()
        rate = tf1.train.exponential_decay(0.1, step, decay_steps=10, decay_rate=0.9)
        return tf.keras.optimizers.legacy.Adam(learning_rate=rate)

    def decayed_sgd():
        schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 20, 0.9)
        return tf.keras.optimizers.legacy.SGD(schedule, momentum=0.9, clipnorm=1.0)

    return e.DNNLinearCombinedClassifier(
        linear_feature_columns=[FLOOR],
        linear_optimizer=decayed_sgd,
        dnn_feature_columns=[SIZE, PLACE],
        dnn_hidden_units=[4],
        dnn_optimizer=decayed_adam,
        config=config,
    )


def _with_functions_in_an_optimizer(e, config):
    """The optimizer object itself has a function that no configuration of it could express."""

    def rate():
        return tf1.train.polynomial_decay(0.1, tf1.train.get_global_step(), 50, 0.01)

    def halved(grads_and_vars):
        return [(0.5 * gradient, variable) for gradient, variable in grads_and_vars]

    optimizer = tf.keras.optimizers.legacy.SGD(rate, gradient_transformers=[halved])
    return e.LinearRegressor([SIZE, PLACE], optimizer=optimizer, config=config)


def _of_a_keras_model(e, config):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(4, use_bias=False, kernel_regularizer="l2", name="a", input_shape=(3,)),
            layers.BatchNormalization(momentum=0.9, name="norm"),
            layers.Activation("relu", name="relu"),
            layers.Dropout(0.0, name="dropout"),
            layers.Dense(1, activation="sigmoid", name="b"),
        ]
    )
    model.compile("adam", "binary_crossentropy", ["accuracy", tf.keras.metrics.AUC(name="auc")])
    # The one name that the reference has elsewhere.
    make = getattr(e, "model_to_estimator", None) or tf.keras.estimator.model_to_estimator
    return make(model, config=config, checkpoint_format="saver")


RAW = {"size": tf.io.FixedLenFeature([], tf.float32), "place": tf.io.FixedLenFeature([2], tf.float32)}
COLUMNS = {
    "size": tf.io.FixedLenFeature([1], tf.float32),
    "place": tf.io.FixedLenFeature([2], tf.float32),
    "floor": tf.io.FixedLenFeature([1], tf.int64),
}

_program = functools.partial(Program, legacy_keras=True)
PROGRAMS = {
    "legacy_keras_layers": _program(
        _batches({"image": IMAGES}, DIGITS),
        functools.partial(_estimator, layers_model_fn),
        {"image": tf.io.FixedLenFeature([36], tf.float32)},
    ),
    "legacy_keras_get_updates": _program(
        dense("number"), functools.partial(_estimator, get_updates_model_fn), RAW
    ),
    "legacy_keras_head": _program(dense("binary"), functools.partial(_estimator, head_model_fn), RAW),
    "legacy_keras_optimizer_object": _program(
        dense("binary"), _with_optimizer_object, {name: COLUMNS[name] for name in ("size", "place")}
    ),
    "legacy_keras_optimizer_functions": _program(dense("binary"), _with_optimizer_functions, COLUMNS),
    "legacy_keras_functions_in_an_optimizer": _program(
        dense("number"), _with_functions_in_an_optimizer, {name: COLUMNS[name] for name in ("size", "place")}
    ),
    "legacy_keras_model_to_estimator": _program(
        _batches({"a_input": SIZE_AND_PLACE}, LABELS["binary"]),
        _of_a_keras_model,
        {"a_input": tf.io.FixedLenFeature([3], tf.float32)},
    ),
}
