"""The programs of TPUEstimator's documentation, and of questions about it, on this machine.

Images are drawn, where the originals read MNIST.
"""

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.tpu import RunConfig, TPUEstimator, TPUEstimatorSpec

tf1 = tf.compat.v1

HEIGHT, WIDTH, TOTAL_EXAMPLES = 4, 4, 20


# The metric Fn which runs on CPU.
def metric_fn(labels, logits):
    predictions = tf.argmax(logits, 1)
    return {"accuracy": tf.compat.v1.metrics.precision(labels=labels, predictions=predictions)}


def mnist_model_fn(features, labels, mode, config, params):
    images = tf.reshape(features["image"], [-1, HEIGHT * WIDTH * 3])
    kernel = tf1.get_variable("kernel", [HEIGHT * WIDTH * 3, 2], initializer=tf1.zeros_initializer())
    logits = tf.matmul(images, kernel)
    if mode == est.ModeKeys.PREDICT:
        return TPUEstimatorSpec(mode=mode, predictions={"predictions": logits})
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == est.ModeKeys.EVAL:
        eval_metrics = (metric_fn, [labels, logits])
        if params["as_dict"]:
            eval_metrics = (metric_fn, {"labels": labels, "logits": logits})
        return TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=eval_metrics)
    optimizer = tf1.train.GradientDescentOptimizer(0.5)
    optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def labelled_input_fn(params):
    """Images of one value, and whether it is above 0; the classes lie far apart."""
    values = tf.concat([tf.linspace(-1.0, -0.5, 10), tf.linspace(0.5, 1.0, 10)], axis=0)
    images = tf.ones([TOTAL_EXAMPLES, HEIGHT, WIDTH, 3]) * values[:, None, None, None]
    labels = tf.cast(values > 0, tf.int64)
    dataset = tf.data.Dataset.from_tensor_slices(({"image": images}, labels))
    return dataset.repeat(4).batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    batch_size = params["batch_size"]
    images = tf.random.uniform([TOTAL_EXAMPLES, HEIGHT, WIDTH, 3], minval=-1, maxval=1)
    dataset = tf.data.Dataset.from_tensor_slices(images)
    dataset = dataset.map(lambda images: {"image": images})
    return dataset.batch(batch_size)


@pytest.mark.more
def test_the_mnist_program_trains_evaluates_and_predicts(tmp_path):
    for as_dict in (False, True):
        tpu_est = TPUEstimator(
            model_fn=mnist_model_fn,
            config=RunConfig(model_dir=str(tmp_path / str(as_dict))),
            params={"as_dict": as_dict},
            use_tpu=False,
            train_batch_size=20,
            eval_batch_size=20,
            predict_batch_size=16,
        )
        tpu_est.train(labelled_input_fn)
        assert tpu_est.evaluate(labelled_input_fn, steps=2)["accuracy"] == 1.0
        # Two batches, the second one of 4 examples: nothing is padded on this machine.
        items = list(tpu_est.predict(input_fn=predict_input_fn))
        assert [item["predictions"].shape for item in items] == [(2,)] * TOTAL_EXAMPLES


def keras_model_fn(features, labels, mode, params):
    """A Keras model inside a model_fn, as in the answer to "convert an Estimator to a TPUEstimator"."""
    model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(1, use_bias=False)])
    outputs = model(features["x"], training=mode == est.ModeKeys.TRAIN)[:, 0]
    if mode == est.ModeKeys.PREDICT:
        return TPUEstimatorSpec(mode, predictions={"outputs": outputs})
    loss = tf.reduce_mean(tf.square(outputs - labels))
    if mode == est.ModeKeys.EVAL:

        def keras_metric_fn(labels, outputs):
            metric = tf.keras.metrics.MeanAbsoluteError()
            metric.update_state(labels, outputs)
            return {"mae": metric}

        return TPUEstimatorSpec(mode, loss=loss, eval_metrics=(keras_metric_fn, [labels, outputs]))
    optimizer = tf1.train.GradientDescentOptimizer(0.25)
    optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step(), var_list=tf1.trainable_variables())
    return TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def keras_input_fn(params):
    dataset = tf.data.Dataset.from_tensors(({"x": [1.0, 0.0]}, 3.0)).repeat(40)
    return dataset.batch(params["batch_size"])


def test_a_keras_model_learns_in_a_model_fn(tmp_path):
    tpu_est = TPUEstimator(
        model_fn=keras_model_fn,
        config=RunConfig(model_dir=str(tmp_path)),
        use_tpu=False,
        train_batch_size=2,
        eval_batch_size=2,
        predict_batch_size=2,
    )
    tpu_est.train(keras_input_fn)
    # Each of 20 steps halves the distance to an output of 3.
    assert abs(next(tpu_est.predict(keras_input_fn))["outputs"] - 3.0) < 1e-4
    assert tpu_est.evaluate(keras_input_fn)["mae"] < 1e-4
