"""A program of a question about TPUEstimator, on this machine."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.tpu import RunConfig, TPUEstimator, TPUEstimatorSpec


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
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.25))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step(), var_list=tf1.trainable_variables())
    return TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def keras_input_fn(params):
    return tf.data.Dataset.from_tensors(({"x": [1.0, 0.0]}, 3.0)).repeat(40).batch(params["batch_size"])


def test_a_keras_model_learns_in_a_model_fn(tmp_path):
    tpu_est = TPUEstimator(
        model_fn=keras_model_fn,
        config=RunConfig(model_dir=str(tmp_path)),
        use_tpu=False,
        train_batch_size=2,
        eval_batch_size=2,
        predict_batch_size=2,
    ).train(keras_input_fn)
    # Each of 20 steps halves the distance to an output of 3.
    assert abs(next(tpu_est.predict(keras_input_fn))["outputs"] - 3.0) < 1e-4
    assert tpu_est.evaluate(keras_input_fn)["mae"] < 1e-4
