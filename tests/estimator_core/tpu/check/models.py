"""Estimators that are compiled for a TPU, with their input_fns."""

import keras
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est

COLUMN = tf.feature_column.numeric_column("x", shape=(32,))


def regression_model_fn(features, labels, mode, params):
    """32 features, 64 hidden units, no biases: 32 * 64 + 64 weights."""
    hidden = tf.nn.relu(features["x"] @ tf1.get_variable("hidden", [32, 64]))
    if params.get("own_python"):
        hidden = tf.ensure_shape(tf.numpy_function(abs, [hidden], tf.float32), hidden.shape)
    outputs = (hidden @ tf1.get_variable("out", [64, 1]))[:, 0]
    if mode == est.ModeKeys.PREDICT:
        return est.tpu.TPUEstimatorSpec(mode, predictions={"y": outputs})
    loss = tf.reduce_mean((outputs - labels) ** 2)
    return est.tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.01)).minimize(
            loss, tf1.train.get_global_step()
        ),
        eval_metrics=(lambda y: {"mean": tf1.metrics.mean(y)}, [outputs]),
    )


def vectors(params):
    example = ({"x": tf.ones([32])}, 1.0)
    dataset = tf.data.Dataset.from_tensors(example).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def regressor(own_python=False, config=None, eval_on_tpu=True):
    return est.tpu.TPUEstimator(
        regression_model_fn,
        config=config or est.tpu.RunConfig(),
        params={"own_python": own_python},
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        predict_batch_size=64,
        eval_on_tpu=eval_on_tpu,
    )


def regressor_and_vectors():
    return regressor(), vectors


def own_python_and_vectors():
    return regressor(own_python=True), vectors


def images():
    return tf.data.Dataset.from_tensors((tf.ones([32, 32, 3]), [1])).repeat().batch(32)


def labelled_vectors():
    return tf.data.Dataset.from_tensors(({"x": tf.ones([32])}, [1])).repeat().batch(32)


def sequences():
    return tf.data.Dataset.from_tensors((tf.ones([7, 2]), [1])).repeat().batch(32)


def cnn_model_fn(features, labels, mode):
    hidden = tf.nn.relu(tf.nn.conv2d(features, tf1.get_variable("w", [3, 3, 3, 8]), 2, "SAME"))
    logits = tf.reshape(hidden, [-1, 16 * 16 * 8]) @ tf1.get_variable("out", [16 * 16 * 8, 10])
    return est.MultiClassHead(10).create_estimator_spec(
        features, mode, logits, labels, optimizer="SGD", trainable_variables=tf1.trainable_variables()
    )


def mobile_net():
    base = keras.applications.MobileNetV2((96, 96, 3), weights=None, include_top=False)
    model = keras.Sequential([base, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1, name="out")])
    model.compile("adam", "mse")
    return est.model_to_estimator(model, checkpoint_format="saver")


def large_images():
    return tf.data.Dataset.from_tensors((tf.ones([96, 96, 3]), [1.0])).repeat().batch(32)


def recurrent():
    model = keras.Sequential([keras.Input((7, 2)), keras.layers.LSTM(8), keras.layers.Dense(1)])
    model.compile("rmsprop", "mse")
    return est.model_to_estimator(model, checkpoint_format="saver")


CONVERTED = {
    "DNNClassifier": (lambda: est.DNNClassifier([10], [COLUMN]), labelled_vectors),
    "LinearClassifier": (lambda: est.LinearClassifier([COLUMN]), labelled_vectors),
    "DNNLinearCombinedClassifier": (
        lambda: est.DNNLinearCombinedClassifier(
            linear_feature_columns=[COLUMN], dnn_feature_columns=[COLUMN], dnn_hidden_units=[10]
        ),
        labelled_vectors,
    ),
    "recurrent": (recurrent, sequences),
    "custom CNN": (lambda: est.Estimator(cnn_model_fn), images),
    "MobileNetV2": (mobile_net, large_images),
}
