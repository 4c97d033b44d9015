import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est

tf1 = tf.compat.v1

_X = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
_Y = np.array([[1.0], [-1.0]], np.float32)
_KERNEL = np.array([[0.5], [-0.25]], np.float32)


def _input_fn():
    return tf.data.Dataset.from_tensors(({"x": _X}, _Y)).repeat()


def _dense():
    return keras.layers.Dense(
        1, kernel_initializer=lambda shape, dtype: tf.constant(_KERNEL), name="dense"
    )


def _eager_kernel(make_optimizer, steps):
    """The kernel after `steps` steps of the same model, in eager Keras."""
    layer, optimizer = _dense(), make_optimizer()
    layer.build((None, 2))
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(_X) - _Y))
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    return layer.kernel.numpy()


def _model_fn(make_optimizer, use_returned_op):
    def model_fn(features, labels, mode):
        layer, optimizer = _dense(), make_optimizer()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(features["x"]) - labels))
        gradients = tape.gradient(loss, layer.trainable_variables)
        update = optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        count = tf1.train.get_global_step().assign_add(1)
        train_op = tf.group(update, count) if use_returned_op else count
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


_OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.1),
    "clipped": lambda: keras.optimizers.RMSprop(0.1, clipnorm=0.5),
    "schedule": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    ),
}


@pytest.mark.parametrize("use_returned_op", [True, False])
@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_keras_optimizers_train_as_they_do_eagerly(tmp_path, name, use_returned_op):
    model_fn = _model_fn(_OPTIMIZERS[name], use_returned_op)
    estimator = est.Estimator(model_fn, tmp_path)
    estimator.train(_input_fn, steps=3)
    estimator.train(_input_fn, steps=2)  # slots and step count come from the checkpoint
    (kernel,) = (n for n in estimator.get_variable_names() if n.endswith("dense/kernel"))
    np.testing.assert_allclose(
        estimator.get_variable_value(kernel), _eager_kernel(_OPTIMIZERS[name], 5), rtol=1e-5
    )


def test_a_learning_rate_may_be_calculated_in_the_graph(tmp_path):
    def decayed():
        step = tf1.train.get_global_step()
        return keras.optimizers.Adam(tf1.train.exponential_decay(0.1, step, 2, 0.5))

    estimator = est.Estimator(_model_fn(decayed, True), str(tmp_path))
    estimator.train(_input_fn, steps=5)
    expected = _eager_kernel(_OPTIMIZERS["schedule"], 5)
    np.testing.assert_allclose(estimator.get_variable_value("dense/kernel"), expected, rtol=1e-5)


@pytest.mark.parametrize("use_returned_op", [True, False])
def test_newer_optimizers_of_tf_keras_train_as_those_of_keras_do(tmp_path, use_returned_op):
    tf_keras = pytest.importorskip("tf_keras")
    make = {
        "tf_keras": lambda: tf_keras.optimizers.SGD(0.1),
        "keras": lambda: keras.optimizers.SGD(0.1),
    }
    kernels = []
    for name, make_optimizer in make.items():

        def model_fn(features, labels, mode, make_optimizer=make_optimizer):
            kernel = tf1.get_variable("kernel", initializer=_KERNEL, use_resource=True)
            loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], kernel) - labels))
            gradients = tf.gradients(loss, [kernel])
            update = make_optimizer().apply_gradients(zip(gradients, [kernel], strict=True))
            count = tf1.train.get_global_step().assign_add(1)
            train_op = tf.group(update, count) if use_returned_op else count
            return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

        estimator = est.Estimator(model_fn, str(tmp_path / name)).train(_input_fn, steps=3)
        kernels.append(estimator.get_variable_value("kernel"))
    assert not np.allclose(kernels[0], _KERNEL)
    np.testing.assert_allclose(*kernels, rtol=1e-6)


def test_moving_statistics_are_updated_in_training_only(tmp_path):
    def model_fn(features, labels, mode):
        layer = keras.layers.BatchNormalization(momentum=0.5, name="norm")
        output = layer(features["x"], training=mode == est.ModeKeys.TRAIN)
        loss = tf.reduce_mean(output)
        step = tf1.train.get_global_step().assign_add(1)
        return est.EstimatorSpec(mode, {"y": output}, loss, step)

    estimator = est.Estimator(model_fn, tmp_path)
    estimator.train(_input_fn, steps=2)
    (name,) = (n for n in estimator.get_variable_names() if n.endswith("moving_mean"))
    # The batch mean is (2, 3.5): after two steps 0.75 of it.
    expected = [1.5, 2.625]
    np.testing.assert_allclose(estimator.get_variable_value(name), expected)
    estimator.evaluate(_input_fn, steps=3)
    np.testing.assert_allclose(estimator.get_variable_value(name), expected)


class _Losses(est.SessionRunHook):
    """Reads the one tensor of the collection of losses at each step."""

    def __init__(self):
        self.losses = []

    def before_run(self, run_context):
        (loss,) = tf1.get_collection(tf1.GraphKeys.LOSSES)
        return est.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


def test_dropout_draws_anew_in_each_step(tmp_path):
    losses = _Losses()

    def model_fn(features, labels, mode):
        output = keras.layers.Dropout(0.5, seed=3)(tf.ones([100]), training=True)
        loss = tf.reduce_sum(output * tf.range(100, dtype=tf.float32))
        return est.EstimatorSpec(
            mode, loss=loss, train_op=tf1.train.get_global_step().assign_add(1)
        )

    est.Estimator(model_fn, tmp_path).train(_input_fn, steps=100, hooks=[losses])
    # Without an order between reading the random state and updating it, some steps draw alike.
    assert len(losses.losses) == 100
    assert [a for a, b in itertools.pairwise(losses.losses) if a == b] == []


def test_dropout_may_be_added_to_a_trained_model(tmp_path):
    # As when tf.estimator has trained it: its checkpoints have no state of random numbers.
    def model_fn(features, labels, mode, params):
        hidden = features["x"]
        if params["dropout"]:
            hidden = keras.layers.Dropout(0.5)(hidden, training=mode == "train")
        loss = tf.reduce_mean(tf.square(_dense()(hidden) - labels))
        train_op = tf1.train.get_global_step().assign_add(1)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    without, with_dropout = (
        est.Estimator(model_fn, str(tmp_path), params={"dropout": dropout})
        for dropout in (False, True)
    )
    without.train(_input_fn, steps=1)
    assert with_dropout.evaluate(_input_fn, steps=1) == without.evaluate(_input_fn, steps=1)
    with_dropout.train(_input_fn, steps=1)
    assert without.get_variable_names() == ["dense/bias", "dense/kernel", "global_step"]


def test_a_saver_of_model_fns_own_restores_nothing_by_training(tmp_path):
    def model_fn(features, labels, mode):
        hidden = keras.layers.BatchNormalization()(features["x"], training=mode == "train")
        hidden = keras.layers.Dropout(0.5)(hidden, training=True)
        loss = tf.reduce_mean(tf.square(_dense()(hidden) - labels))
        scaffold = tf1.train.Scaffold(saver=tf1.train.Saver())
        train_op = tf1.train.get_global_step().assign_add(1)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

    estimator = est.Estimator(model_fn, tmp_path).train(_input_fn, steps=2)
    assert estimator.evaluate(_input_fn, steps=2)["global_step"] == 2


def test_keras_metrics_are_evaluated_over_all_batches(tmp_path):
    def input_fn():
        features = {"x": [[1.0], [2.0], [6.0]]}
        return tf.data.Dataset.from_tensor_slices((features, tf.zeros([3, 1]))).batch(2)

    def model_fn(features, labels, mode):
        metric = keras.metrics.MeanAbsoluteError(name="mae")
        metric.update_state(labels, features["x"])
        loss = tf.reduce_sum(features["x"])
        step = tf1.train.get_global_step().assign_add(1)
        metrics = {"mae": metric} if mode == est.ModeKeys.EVAL else None
        return est.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=metrics)

    estimator = est.Estimator(model_fn, tmp_path)
    estimator.train(input_fn, steps=1)
    for _ in range(2):
        assert estimator.evaluate(input_fn)["mae"] == pytest.approx(3.0)


def test_a_keras_metric_that_was_not_updated_is_refused(tmp_path):
    def model_fn(features, labels, mode):
        metric = keras.metrics.MeanAbsoluteError()
        return est.EstimatorSpec(mode, loss=tf.constant(0.0), eval_metric_ops={"mae": metric})

    with pytest.raises(ValueError, match="update_state"):
        est.Estimator(model_fn, tmp_path).evaluate(_input_fn, steps=1)


def test_object_based_checkpoints_are_read_back_by_eager_keras(tmp_path):
    def model_fn(features, labels, mode):
        layer, optimizer = _dense(), keras.optimizers.Adam(0.1)
        step = tf1.train.get_global_step()
        checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, layer=layer)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(features["x"]) - labels))
        gradients = tape.gradient(loss, layer.trainable_variables)
        update = optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        return est.EstimatorSpec(
            mode,
            loss=loss,
            train_op=tf.group(update, checkpoint.step.assign_add(1)),
            scaffold=tf1.train.Scaffold(saver=checkpoint),
        )

    est.Estimator(model_fn, tmp_path).train(_input_fn, steps=4)
    layer, optimizer = _dense(), keras.optimizers.Adam(0.1)
    layer.build((None, 2))
    optimizer.build(layer.trainable_variables)
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, layer=layer)
    checkpoint.restore(tf.train.latest_checkpoint(str(tmp_path)))
    assert step.numpy() == 4
    assert optimizer.iterations.numpy() == 4
    expected = _eager_kernel(lambda: keras.optimizers.Adam(0.1), 4)
    np.testing.assert_allclose(layer.kernel.numpy(), expected, rtol=1e-5)


def test_a_model_with_object_based_checkpoints_predicts_and_is_exported(tmp_path):
    def model_fn(features, labels, mode):
        layer = _dense()
        step = tf1.train.get_global_step()
        predictions = layer(features["x"])
        checkpoint = tf.train.Checkpoint(step=step, layer=layer)
        loss = train_op = None
        if mode == est.ModeKeys.TRAIN:
            loss = tf.reduce_mean(predictions)
            train_op = tf.group(layer.kernel.value.assign_add([[1.0], [2.0]]), step.assign_add(1))
        return est.EstimatorSpec(
            mode,
            predictions={"y": predictions},
            loss=loss,
            train_op=train_op,
            scaffold=tf1.train.Scaffold(saver=checkpoint),
        )

    def ones():
        return tf.data.Dataset.from_tensors(({"x": [[1.0, 1.0]]}, [[0.0]]))

    estimator = est.Estimator(model_fn, tmp_path).train(ones, steps=1)
    first = [row["y"] for row in estimator.predict(ones)]
    estimator.train(ones, steps=1)
    second = [row["y"] for _ in range(2) for row in estimator.predict(ones)]
    # Each step adds 1 and 2 to the two weights: 3 more for the input (1, 1).
    np.testing.assert_allclose(second, [first[0] + 3.0] * 2, rtol=1e-6)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn(
        {"x": tf.TensorSpec([None, 2], tf.float32)}
    )
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    serve = tf.saved_model.load(path).signatures["serving_default"]
    np.testing.assert_allclose(serve(x=tf.ones([1, 2]))["y"], second[:1], rtol=1e-6)


def _tf_keras_model(tf_keras):
    layers = tf_keras.layers
    return tf_keras.Sequential(
        [
            layers.BatchNormalization(momentum=0.5, name="norm"),
            layers.Dense(
                1, kernel_initializer=tf_keras.initializers.Constant(_KERNEL), name="dense"
            ),
        ]
    )


def _tf_keras_model_fn(tf_keras, make_optimizer, updates_of):
    def model_fn(features, labels, mode):
        model = _tf_keras_model(tf_keras)
        outputs = model(features["x"], training=mode == est.ModeKeys.TRAIN)
        if mode == est.ModeKeys.PREDICT:
            return est.EstimatorSpec(mode, predictions={"y": outputs})
        loss = tf.reduce_mean(tf.square(outputs - labels))
        if mode == est.ModeKeys.EVAL:
            metric = tf_keras.metrics.MeanAbsoluteError()
            metric.update_state(labels, outputs)
            return est.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mae": metric})
        optimizer = make_optimizer()
        optimizer.iterations = tf1.train.get_or_create_global_step()
        (update,) = optimizer.get_updates(loss, model.trainable_variables)
        train_op = tf.group(update, *updates_of(model, features["x"]))
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


@pytest.mark.filterwarnings("ignore:.*updates:UserWarning")  # tf_keras', of what this is about
@pytest.mark.parametrize(
    "updates_of",
    [
        lambda model, inputs: model.updates,
        lambda model, inputs: model.get_updates_for(None) + model.get_updates_for(inputs),
        lambda model, inputs: model.get_layer("norm").updates,
    ],
)
def test_tf_keras_layers_and_get_updates_train_as_they_do_eagerly(tmp_path, updates_of):
    tf_keras = pytest.importorskip("tf_keras")

    def make_optimizer():
        schedule = tf_keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
        return tf_keras.optimizers.legacy.Adam(schedule)

    estimator = est.Estimator(_tf_keras_model_fn(tf_keras, make_optimizer, updates_of), tmp_path)
    estimator.train(_input_fn, steps=3)
    estimator.train(_input_fn, steps=2)  # slots and step count come from the checkpoint
    results = estimator.evaluate(_input_fn, steps=3)
    predicted = next(estimator.predict(_input_fn, yield_single_examples=False))["y"]

    model, optimizer = _tf_keras_model(tf_keras), make_optimizer()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(_X, training=True) - _Y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    expected = model(_X).numpy()
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)
    assert results["global_step"] == 5
    assert results["mae"] == pytest.approx(np.abs(expected - _Y).mean(), rel=1e-5)
    assert results["loss"] == pytest.approx(np.square(expected - _Y).mean(), rel=1e-5)
    # The names of 2.15's Keras: nothing is counted on from other graphs.
    trained = [
        f"sequential/{name}" for name in ("norm/gamma", "norm/beta", "dense/kernel", "dense/bias")
    ]
    assert set(estimator.get_variable_names()) == {
        "global_step",
        *trained,
        *(f"sequential/norm/moving_{name}" for name in ("mean", "variance")),
        *(f"Adam/{name}" for name in ("beta_1", "beta_2", "decay")),
        *(f"Adam/{name}/{slot}" for name in trained for slot in "mv"),
    }


def test_a_tf_keras_dropout_draws_anew_in_each_step(tmp_path):
    tf_keras = pytest.importorskip("tf_keras")
    losses = _Losses()

    def model_fn(features, labels, mode):
        output = tf_keras.layers.Dropout(0.5, seed=3)(tf.ones([100]), training=True)
        loss = tf.reduce_sum(output * tf.range(100, dtype=tf.float32))
        return est.EstimatorSpec(
            mode, loss=loss, train_op=tf1.train.get_global_step().assign_add(1)
        )

    est.Estimator(model_fn, tmp_path).train(_input_fn, steps=20, hooks=[losses])
    assert len(set(losses.losses)) == 20
