import itertools
import sys
import threading
from concurrent import futures

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.keras_in_graph.eager_tracing import eager_unless_replicated
from tests.estimator_core.keras_in_graph.dense import KERNEL, X, Y, dense, input_fn
from tests.estimator_core.programs import AfterEachRun, Fetching, counting


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_dropout_draws_anew_in_each_step(tmp_path, package):
    layers, losses = pytest.importorskip(package).layers, Fetching()

    def model_fn(features, labels, mode):
        output = layers.Dropout(0.5, seed=3)(tf.ones([100]), training=True)
        return counting(mode, tf.reduce_sum(output * tf.range(100, dtype=tf.float32)))

    est.Estimator(model_fn, tmp_path).train(input_fn, steps=100, hooks=[losses])
    # Without an order between reading the random state and updating it, some steps draw alike.
    assert len(losses.values) == 100
    assert [a for a, b in itertools.pairwise(losses.values) if a == b] == []


def test_dropout_may_be_added_to_a_trained_model(tmp_path):
    # As when tf.estimator has trained it: its checkpoints have no state of random numbers.
    def model_fn(features, labels, mode, params):
        hidden = features["x"]
        if params["dropout"]:
            hidden = keras.layers.Dropout(0.5)(hidden, training=mode == "train")
        return counting(mode, tf.reduce_mean(tf.square(dense()(hidden) - labels)))

    without, with_dropout = (
        est.Estimator(model_fn, str(tmp_path), params={"dropout": dropout}) for dropout in (False, True)
    )
    without.train(input_fn, steps=1)
    assert with_dropout.evaluate(input_fn, steps=1) == without.evaluate(input_fn, steps=1)
    with_dropout.train(input_fn, steps=1)
    assert without.get_variable_names() == ["dense/bias", "dense/kernel", "global_step"]


def test_a_saver_of_model_fns_own_restores_nothing_by_training(tmp_path):
    def model_fn(features, labels, mode):
        hidden = keras.layers.BatchNormalization()(features["x"], training=mode == "train")
        hidden = keras.layers.Dropout(0.5)(hidden, training=True)
        loss = tf.reduce_mean(tf.square(dense()(hidden) - labels))
        return counting(mode, loss, scaffold=tf1.train.Scaffold(saver=tf1.train.Saver()))

    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=2)
    assert estimator.evaluate(input_fn, steps=2)["global_step"] == 2


def _keras_classes():
    classes = [keras.Variable, keras.optimizers.Optimizer, keras.optimizers.SGD]
    if "tf_keras" in sys.modules:
        classes.append(sys.modules["tf_keras"].optimizers.Optimizer)
    return classes


def _attributes():
    """The attributes of the classes, but for the annotations, which Python adds when they are asked for."""
    return [
        {name: value for name, value in vars(owner).items() if name != "__annotations__"}
        for owner in _keras_classes()
    ]


def _uses_keras(features, labels, mode):
    hidden = keras.layers.BatchNormalization()(features["x"], training=mode == "train")
    outputs = dense()(hidden)
    if mode == est.ModeKeys.PREDICT:
        return est.EstimatorSpec(mode, {"y": outputs})
    loss = tf.reduce_mean(tf.square(outputs - labels))
    variables = tf1.trainable_variables()
    pairs = zip(tf.gradients(loss, variables), variables, strict=True)
    update = keras.optimizers.SGD(0.1).apply_gradients(pairs)
    train_op = tf.group(update, tf1.train.get_global_step().assign_add(1))
    return est.EstimatorSpec(mode, {"y": outputs}, loss, train_op)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_keras_is_the_very_same_after_an_error_in_model_fn(tmp_path, error):
    before = _attributes()

    def model_fn(features, labels, mode):
        _uses_keras(features, labels, mode)
        raise error("stop")

    with pytest.raises(error, match="stop"):
        est.Estimator(model_fn, tmp_path).train(input_fn, steps=1)
    assert _attributes() == before
    estimator = est.Estimator(_uses_keras, tmp_path).train(input_fn, steps=1)
    assert estimator.get_variable_value("global_step") == 1


def test_keras_is_the_very_same_while_the_graph_runs_and_afterwards(tmp_path):
    before, seen = _attributes(), []
    estimator = est.Estimator(_uses_keras, tmp_path)
    estimator.train(input_fn, steps=2, hooks=[AfterEachRun(lambda _: seen.append(_attributes()))])
    assert [*seen, _attributes()] == [before] * 3
    estimator.evaluate(input_fn, steps=1)
    next(estimator.predict(input_fn))
    assert _attributes() == before


@pytest.mark.more
def test_two_threads_that_build_at_once_and_the_last_one_restores(tmp_path):
    before = _attributes()
    barrier = threading.Barrier(2, timeout=120)

    def model_fn(features, labels, mode):
        barrier.wait()  # both are in the midst of model_fn
        spec = _uses_keras(features, labels, mode)
        barrier.wait()
        return spec

    estimators = [est.Estimator(model_fn, str(tmp_path / name)) for name in ("a", "b")]
    with futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda estimator: estimator.train(input_fn, steps=3), estimators))
    assert _attributes() == before
    kernels = [estimator.get_variable_value("dense/kernel") for estimator in estimators]
    np.testing.assert_array_equal(*kernels)
    assert not np.allclose(kernels[0], KERNEL)


def _fit():
    keras.utils.set_random_seed(5)
    layers = [keras.layers.Dropout(0.5, seed=1), keras.layers.BatchNormalization(), dense()]
    model = keras.Sequential([keras.Input((2,)), *layers])
    model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    return model.fit(X, Y, epochs=3, verbose=0).history, model.get_weights()


@pytest.mark.more
def test_keras_trains_in_another_thread_as_ever(tmp_path):
    expected, expected_weights = _fit()
    results = []

    def model_fn(features, labels, mode):
        thread = threading.Thread(target=lambda: results.append(_fit()))
        thread.start()
        spec = _uses_keras(features, labels, mode)
        thread.join()  # all of its training has been while model_fn was called
        return spec

    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=1)
    ((history, weights),) = results
    assert history == expected
    for weight, other in zip(weights, expected_weights, strict=True):
        np.testing.assert_array_equal(weight, other)
    # Nothing of the other model is in the Estimator's.
    assert sorted(estimator.get_variable_names()) == [
        *(f"batch_normalization/{n}" for n in ("beta", "gamma", "moving_mean", "moving_variance")),
        "dense/bias",
        "dense/kernel",
        "global_step",
        "sgd/iteration",
        "sgd/learning_rate",
    ]


def test_a_graph_within_model_fn_and_eager_code_are_left_alone(tmp_path):
    def model_fn(features, labels, mode):
        with eager_unless_replicated():
            eager = keras.Variable(1.0)
            eager.assign_add(2.0)
            assert eager.numpy() == 3.0
        with pytest.raises(ValueError, match="learning_rate"):
            keras.optimizers.SGD(None)
        return _uses_keras(features, labels, mode)

    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=1)
    assert not [name for name in estimator.get_variable_names() if name.startswith("variable")]


def test_what_a_user_has_replaced_himself_is_called_and_kept(tmp_path, monkeypatch):
    calls = []
    assign = keras.Variable.assign

    def counted(self, value):
        calls.append(self.name)
        return assign(self, value)

    monkeypatch.setattr(keras.Variable, "assign", counted)
    est.Estimator(_uses_keras, tmp_path).train(input_fn, steps=1)
    assert {"moving_mean", "moving_variance"} <= set(calls)
    assert vars(keras.Variable)["assign"] is counted


def test_a_replacement_of_the_users_that_is_made_in_model_fn_stays_harmless(tmp_path):
    def model_fn(features, labels, mode):
        inner = keras.Variable.assign
        keras.Variable.assign = lambda self, value: inner(self, value)
        return _uses_keras(features, labels, mode)

    try:
        est.Estimator(model_fn, tmp_path).train(input_fn, steps=1)
        variable = keras.Variable(1.0)
        variable.assign(4.0)
        assert variable.numpy() == 4.0
    finally:
        del keras.Variable.assign  # it is inherited


def test_a_keras_that_model_fn_imports_is_followed_from_then_on(tmp_path, monkeypatch):
    tf_keras = pytest.importorskip("tf_keras")
    monkeypatch.delitem(sys.modules, "tf_keras")
    before = dict(vars(tf_keras.optimizers.Optimizer))

    def model_fn(features, labels, mode):
        sys.modules["tf_keras"] = tf_keras  # as an import does
        kernel = tf1.get_variable("kernel", initializer=KERNEL)
        loss = tf.reduce_sum(kernel)
        tf_keras.optimizers.SGD(0.5).apply_gradients([(tf.gradients(loss, [kernel])[0], kernel)])
        return counting(mode, loss)

    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=2)
    # The slope is 1: two steps of 0.5.
    np.testing.assert_allclose(estimator.get_variable_value("kernel"), KERNEL - 1.0)
    assert dict(vars(tf_keras.optimizers.Optimizer)) == before


def test_keras_3_that_model_fn_imports_is_refused(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "keras")

    def model_fn(features, labels, mode):
        sys.modules["keras"] = keras
        return _uses_keras(features, labels, mode)

    with pytest.raises(RuntimeError, match="import keras at the top of the module"):
        est.Estimator(model_fn, tmp_path).train(input_fn, steps=1)


def test_a_model_fn_may_train_another_model(tmp_path):
    """As one that learns from a teacher; the teacher's updates are not those of this graph."""

    def teacher_fn(features, labels, mode):
        layer = dense()
        prediction = layer(features["x"])
        if mode == est.ModeKeys.PREDICT:
            return est.EstimatorSpec(mode, {"y": prediction})
        loss = tf.reduce_mean(tf.square(prediction - labels))
        gradients = tf.gradients(loss, [variable.value for variable in layer.trainable_variables])
        pairs = zip(gradients, layer.trainable_variables, strict=True)
        train_op = tf.group(
            keras.optimizers.SGD(0.01).apply_gradients(pairs), tf1.train.get_global_step().assign_add(1)
        )
        return est.EstimatorSpec(mode, {"y": prediction}, loss, train_op)

    def model_fn(features, labels, mode):
        teacher = est.Estimator(teacher_fn, tmp_path / "teacher").train(input_fn, steps=2)
        taught = next(teacher.predict(input_fn))["y"]
        return teacher_fn({"x": features["x"]}, np.stack([taught, taught]), mode)

    def by_hand(target, steps):
        bias, kernel = np.zeros(1), KERNEL.astype(float)
        for _ in range(steps):
            error = 2 * (X @ kernel + bias - target) / 2
            bias, kernel = bias - 0.01 * error.sum(0), kernel - 0.01 * X.T @ error
        return bias, kernel

    student = est.Estimator(model_fn, tmp_path / "student").train(input_fn, steps=3)
    assert student.get_variable_value("global_step") == 3
    assert est.Estimator(teacher_fn, tmp_path / "teacher").get_variable_value("global_step") == 2
    bias, kernel = by_hand(Y.astype(float), 2)
    # From the teacher's prediction for the first example.
    _, kernel = by_hand(np.repeat((X @ kernel + bias)[:1], 2, axis=0), 3)
    np.testing.assert_allclose(student.get_variable_value("dense/kernel"), kernel, rtol=1e-5)
