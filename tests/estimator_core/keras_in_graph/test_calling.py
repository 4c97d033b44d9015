import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.keras_in_graph.dense import dense, eager_kernel, input_fn
from tests.estimator_core.programs import batch_of, counting


def test_moving_statistics_are_updated_in_training_only(tmp_path):
    def model_fn(features, labels, mode):
        layer = keras.layers.BatchNormalization(momentum=0.5, name="norm")
        output = layer(features["x"], training=mode == est.ModeKeys.TRAIN)
        return counting(mode, tf.reduce_mean(output), predictions={"y": output})

    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=2)
    (name,) = (n for n in estimator.get_variable_names() if n.endswith("moving_mean"))
    # The batch mean is (2, 3.5): after two steps 0.75 of it.
    expected = [1.5, 2.625]
    np.testing.assert_allclose(estimator.get_variable_value(name), expected)
    estimator.evaluate(input_fn, steps=3)
    np.testing.assert_allclose(estimator.get_variable_value(name), expected)


def test_keras_metrics_are_evaluated_over_all_batches(tmp_path):
    def batches():
        features = {"x": [[1.0], [2.0], [6.0]]}
        return tf.data.Dataset.from_tensor_slices((features, tf.zeros([3, 1]))).batch(2)

    def model_fn(features, labels, mode):
        metric = keras.metrics.MeanAbsoluteError(name="mae")
        metric.update_state(labels, features["x"])
        metrics = {"mae": metric} if mode == est.ModeKeys.EVAL else None
        return counting(mode, tf.reduce_sum(features["x"]), eval_metric_ops=metrics)

    estimator = est.Estimator(model_fn, tmp_path).train(batches, steps=1)
    for _ in range(2):
        assert estimator.evaluate(batches)["mae"] == pytest.approx(3.0)


def test_a_keras_metric_that_was_not_updated_is_refused(tmp_path):
    def model_fn(features, labels, mode):
        metric = keras.metrics.MeanAbsoluteError()
        return est.EstimatorSpec(mode, loss=tf.constant(0.0), eval_metric_ops={"mae": metric})

    with pytest.raises(ValueError, match="update_state"):
        est.Estimator(model_fn, tmp_path).evaluate(input_fn, steps=1)


def test_object_based_checkpoints_are_read_back_by_eager_keras(tmp_path):
    def model_fn(features, labels, mode):
        layer, optimizer = dense(), keras.optimizers.Adam(0.1)
        checkpoint = tf.train.Checkpoint(step=tf1.train.get_global_step(), optimizer=optimizer, layer=layer)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(features["x"]) - labels))
        gradients = tape.gradient(loss, layer.trainable_variables)
        update = optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        train_op = tf.group(update, checkpoint.step.assign_add(1))
        scaffold = tf1.train.Scaffold(saver=checkpoint)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

    est.Estimator(model_fn, tmp_path).train(input_fn, steps=4)
    layer, optimizer = dense(), keras.optimizers.Adam(0.1)
    layer.build((None, 2))
    optimizer.build(layer.trainable_variables)
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, layer=layer)
    checkpoint.restore(tf.train.latest_checkpoint(str(tmp_path)))
    assert step.numpy() == optimizer.iterations.numpy() == 4
    expected = eager_kernel(lambda: keras.optimizers.Adam(0.1), 4)
    np.testing.assert_allclose(layer.kernel.numpy(), expected, rtol=1e-5)


@pytest.mark.more
def test_a_model_with_object_based_checkpoints_predicts_and_is_exported(tmp_path):
    def model_fn(features, labels, mode):
        layer, step = dense(), tf1.train.get_global_step()
        predictions = layer(features["x"])
        scaffold = tf1.train.Scaffold(saver=tf.train.Checkpoint(step=step, layer=layer))
        if mode != est.ModeKeys.TRAIN:
            return est.EstimatorSpec(mode, {"y": predictions}, scaffold=scaffold)
        train_op = tf.group(layer.kernel.value.assign_add([[1.0], [2.0]]), step.assign_add(1))
        return est.EstimatorSpec(mode, loss=tf.reduce_mean(predictions), train_op=train_op, scaffold=scaffold)

    ones = batch_of({"x": [[1.0, 1.0]]}, [[0.0]])
    estimator = est.Estimator(model_fn, tmp_path).train(ones, steps=1)
    first = [row["y"] for row in estimator.predict(ones)]
    estimator.train(ones, steps=1)
    second = [row["y"] for _ in range(2) for row in estimator.predict(ones)]
    # Each step adds 1 and 2 to the two weights: 3 more for the input (1, 1).
    np.testing.assert_allclose(second, [first[0] + 3.0] * 2, rtol=1e-6)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 2], tf.float32)})
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    serve = tf.saved_model.load(path).signatures["serving_default"]
    np.testing.assert_allclose(serve(x=tf.ones([1, 2]))["y"], second[:1], rtol=1e-6)


def test_what_keras_3_has_not_is_said_with_the_way_to_keras_2(tmp_path):
    def model_fn(features, labels, mode):
        # TensorFlow's message about tf.compat.v1.layers.dense, unless something has imported its layers
        # for Keras 2, as TFX does.
        raise AttributeError("`dense` is not available with Keras 3.")

    def mistaken_fn(features, labels, mode):
        return features.no_such_thing

    for fn, message in (
        (model_fn, r"dense.*not available with Keras 3.*TF_USE_LEGACY_K"),
        (mistaken_fn, r"has no attribute 'no_such_thing'$"),
    ):
        with pytest.raises(AttributeError, match=message):
            est.Estimator(fn, tmp_path).train(input_fn)
