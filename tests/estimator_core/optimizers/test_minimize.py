import contextlib
import copy
import gc
import os
import threading
import weakref
from unittest import mock

import keras as keras3
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.optimizers.minimize import OptimizedPart, get_optimizer, minimize, minimize_parts
from tests.estimator_core.optimizers.one_vector import train
from tests.estimator_core.programs import batch_of


def keras(name, **kwargs):
    return getattr(tf.keras.optimizers, name)(**kwargs)


@pytest.fixture
def legacy():
    return pytest.importorskip("tf_keras").optimizers.legacy


def ones(name, **options):
    return tf1.get_variable(name, [], initializer=tf1.initializers.ones(), **options)


def made_by(made, make):
    """A function that returns an existing optimizer, or the given function."""
    optimizer = make()
    return (lambda: optimizer) if made == "eagerly" else (lambda: make)


EITHER_WAY = pytest.mark.parametrize("made", ["eagerly", "in_a_function"])


def test_learning_rate_of_a_named_optimizer(session):
    vector = ones("vector")
    train_op = minimize_parts(vector * 3.0, [OptimizedPart("SGD", [vector], 0.5)])
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run(vector) == pytest.approx(1 - 0.5 * 3)


KERAS = [
    ("SGD", {"learning_rate": 0.25}, [0.75, 1.5, 1.0]),
    ("Adam", {"learning_rate": 0.25}, [0.75, 1.25, 1.0]),
]


@pytest.mark.parametrize(("name", "kwargs", "expected"), KERAS)
@EITHER_WAY
def test_a_keras_optimizer_makes_its_step_in_several_graphs(name, kwargs, expected, made):
    make = made_by(made, lambda: keras(name, **kwargs))
    for _ in range(2):  # the same object serves several graphs
        np.testing.assert_allclose(train(make, steps=1)[0][0], expected, rtol=1e-5)


def test_keras_optimizer_made_in_the_graph_is_used_as_it_is(graph):
    optimizer = keras("Adam")
    assert get_optimizer(optimizer) is optimizer


@EITHER_WAY
def test_keras_variables_are_named_alike_however_many_optimizers_there_were(made):
    names = [train(made_by(made, lambda: keras("Adam")), steps=1)[1] for _ in range(2)]
    assert names[0] == names[1]
    assert "training/adam/iteration" in names[0]


def rate_by_the_global_step():
    """0.5 in the first step, and then 0.25."""
    return tf.where(tf1.train.get_or_create_global_step() < 1, 0.5, 0.25)


def keras_schedule():
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([0, 1], [0.5, 0.25, 0.125])
    return keras("SGD", learning_rate=schedule)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (keras_schedule, [0.5, 0.25, 0.125]),
        (lambda: lambda: tf1.train.GradientDescentOptimizer(rate_by_the_global_step()), [0.5, 0.25]),
    ],
    ids=["keras", "tensorflow 1"],
)
def test_a_schedule_counts_steps(make, expected):
    values, _ = train(make, steps=len(expected))
    np.testing.assert_allclose(values[:, 0], expected, rtol=1e-6)


def test_keras_sparse_gradients():
    values, _ = train(lambda: keras("SGD", learning_rate=0.25), steps=1, sparse=True)
    np.testing.assert_allclose(values[0], [0.5, 0.75, 1.0])


@pytest.mark.parametrize("replicated", [False, True])
@EITHER_WAY
def test_keras_optimizers_do_not_wait_for_updates_to_be_initialized(made, replicated):
    make = made_by(made, lambda: keras("SGD", learning_rate=0.25, momentum=0.5))()
    strategy = tf.distribute.OneDeviceStrategy("cpu:0") if replicated else None
    with tf.Graph().as_default(), strategy.scope() if strategy else contextlib.nullcontext():
        vector, average = ones("vector"), ones("average", trainable=False)
        tf1.train.get_or_create_global_step()

        def step():
            with tf.control_dependencies([average.assign_sub(0.5)]):
                return minimize(make, vector * 2.0, [vector])

        train_op = strategy.run(step) if strategy else step()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(train_op)
            assert session.run(vector) == pytest.approx(1 - 0.25 * 2)


@EITHER_WAY
@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda: keras("LossScaleOptimizer", inner_optimizer=keras("SGD", learning_rate=0.25)),
        lambda: keras("SGD", learning_rate=0.25, loss_scale_factor=16.0),
    ],
)
def test_keras_optimizers_that_scale_the_loss(make_optimizer, made):
    values, names = train(made_by(made, make_optimizer), steps=2)
    np.testing.assert_allclose(values, [[0.75, 1.5, 1.0], [0.5, 2.0, 1.0]], rtol=1e-6)
    assert len(names) == len(set(names))
    assert sum("dynamic_scale" in name for name in names) == hasattr(make_optimizer(), "inner_optimizer")


def test_tf_keras_legacy_counts_by_the_global_step_and_keeps_the_names_of_2_15(legacy):
    values, names = train(lambda: legacy.Adam(0.25))
    np.testing.assert_allclose(values[:, 0], [0.75, 0.5, 0.25], rtol=1e-5)
    assert {name for name in names if name.startswith("training/")} == {
        f"training/Adam/{name}"
        for name in ("learning_rate", "decay", "beta_1", "beta_2", "vector/m", "vector/v")
    }


def test_an_optimizer_of_tf_keras_minimizes():
    tf_keras = pytest.importorskip("tf_keras")
    values, _ = train(lambda: tf_keras.optimizers.Adam(0.25))
    np.testing.assert_allclose(values[:, 0], [0.75, 0.5, 0.25], rtol=1e-4)


@pytest.mark.parametrize("made", ["eagerly", "in_a_function"])
def test_tf_keras_legacy_learning_rates_are_calculated_in_the_graph(legacy, made):
    rate = rate_by_the_global_step
    optimizer = legacy.SGD(rate) if made == "eagerly" else lambda: legacy.SGD(rate())
    for _ in range(2):  # the same object serves several graphs
        values, names = train(lambda: optimizer, steps=2)
        np.testing.assert_allclose(values[:, 0], [0.5, 0.25])
        assert "training/SGD/learning_rate" not in names


@pytest.mark.parametrize("is_used", [False, True])
def test_tf_keras_legacy_keeps_functions_that_no_configuration_has(legacy, is_used):
    def halved(grads_and_vars):
        return [(0.5 * gradient, variable) for gradient, variable in grads_and_vars]

    optimizer = legacy.SGD(lambda: tf.constant(0.5), gradient_transformers=[halved])
    if is_used:  # eagerly
        weight = tf.Variable(1.0)
        optimizer.minimize(lambda: weight * 1.0, [weight])
        assert weight.numpy() == pytest.approx(1 - 0.5 * 0.5)
    for make in (optimizer, lambda: optimizer):
        values, _ = train(lambda make=make: make, steps=2)
        np.testing.assert_allclose(values[:, 0], [0.75, 0.5])


def test_tf_keras_legacy_made_and_counting_in_the_graph_is_used_as_it_is(legacy):
    with tf.Graph().as_default():
        optimizer = legacy.Adam(0.25)
        optimizer.iterations = step = tf1.train.get_or_create_global_step()
        assert get_optimizer(optimizer, iterations=step) is optimizer
    with tf.Graph().as_default():
        other = tf1.train.get_or_create_global_step()
        copied = get_optimizer(optimizer, iterations=other)
        assert copied is not optimizer
        assert copied.iterations is other


def test_tf_keras_legacy_that_scales_the_loss():
    keras_2 = pytest.importorskip("tf_keras")
    optimizer = keras_2.mixed_precision.LossScaleOptimizer(keras_2.optimizers.legacy.SGD(0.25))
    for _ in range(2):
        values, _ = train(lambda: optimizer, steps=2)
        np.testing.assert_allclose(values, [[0.75, 1.5, 1.0], [0.5, 2.0, 1.0]], rtol=1e-6)


def test_tf_keras_with_averages_of_the_variables_is_refused():
    optimizer = pytest.importorskip("tf_keras").optimizers.SGD(0.25, use_ema=True)
    with pytest.raises(ValueError, match=r"use_ema.*Received: optimizer="):
        train(lambda: optimizer)


def test_parts_have_their_own_optimizers_names_and_counts(session):
    first, second = ones("first"), ones("second")
    parts = [OptimizedPart("Adam", [first], 0.5), OptimizedPart("Adam", [second], 0.25)]
    train_op = minimize_parts(first * second, parts)
    names = {variable.op.name: variable for variable in tf1.global_variables()}
    assert {"training/Adam/first/m", "training/Adam_1/second/m"} <= names.keys()
    assert "training/Adam/iter" not in names  # the first counts by the global step
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    # Both slopes are taken before either update.
    assert session.run([first, second]) == pytest.approx([0.5, 0.75], rel=1e-5)
    assert session.run([names["training/Adam_1/iter"], names["global_step"]]) == [1, 1]


def test_unknown_name_lists_the_choices_nearest_first():
    with pytest.raises(ValueError, match=r"one of \['Adam', .*'SGD'.*Received: optimizer='adam'"):
        get_optimizer("adam")


class OnlyApplies:
    """Has some methods of a Keras optimizer."""

    apply_gradients = get_config = None


@pytest.mark.parametrize("wrong", [3, None, object(), lambda: 3, int, OnlyApplies()])
def test_an_object_that_is_no_optimizer_is_refused(wrong):
    with pytest.raises(ValueError, match=r"not a tf\.keras\.optimizers.*Received: optimizer"):
        get_optimizer(wrong)


@pytest.mark.parametrize("kind", [tf.keras.optimizers.Adam, tf1.train.AdamOptimizer])
def test_a_class_is_made_without_arguments(kind, graph):
    assert isinstance(get_optimizer(kind), kind)


def test_nothing_to_train(graph):
    with pytest.raises(ValueError, match="no trainable variables"):
        minimize("SGD", tf.constant(1.0))
    tf1.get_variable("unused", [])
    with pytest.raises(ValueError, match=r"depends on none.*unused"):
        minimize("SGD", tf.constant(1.0))


examples = batch_of({"x": [[0.0]]}, [[2.0]], repeat=3)


def one_column_model(linear_optimizer, dnn_optimizer):
    columns = [tf.feature_column.numeric_column("x")]
    linear = {"linear_feature_columns": columns, "linear_optimizer": linear_optimizer}
    dnn = {"dnn_feature_columns": columns, "dnn_hidden_units": [2], "dnn_optimizer": dnn_optimizer}
    return est.DNNLinearCombinedRegressor(**linear, **dnn)


@pytest.mark.more
def test_the_given_keras_2_optimizer_counts_by_the_global_step(legacy):
    """2.15 prints global_step:0 and training/Ftrl/iter:0."""
    first, second = legacy.Adagrad(0.5), legacy.Ftrl(0.5)
    estimator = one_column_model(second, first)
    first.learning_rate = 0.25
    estimator.train(examples, steps=2)
    assert first.iterations.name == "global_step:0"
    assert second.iterations.name == "training/Ftrl/iter:0"
    assert estimator.get_variable_value("training/Adagrad/learning_rate") == 0.25
    estimator.train(examples, steps=1)  # an error in 2.15
    assert estimator.get_variable_value("training/Ftrl/iter") == 3


@pytest.mark.more
def test_one_keras_2_optimizer_for_two_parts_and_two_models_counts_each_step_once(legacy):
    """2.15 counts the step of each part, and refuses the second model."""
    optimizer = legacy.Adam(0.5)
    for _ in range(2):
        estimator = one_column_model(optimizer, optimizer).train(examples)
        assert estimator.get_variable_value("global_step") == 3


def test_the_given_keras_2_optimizer_is_the_same_object_again_in_its_graph(legacy):
    """As get_optimizer_instance_v2 of 2.15, followed by a head with that optimizer."""
    optimizer = legacy.SGD(0.25)
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        assert get_optimizer(optimizer) is optimizer
        assert get_optimizer(optimizer, iterations=step) is optimizer
        assert optimizer.iterations is step
        assert get_optimizer(optimizer, iterations=step) is optimizer
    with tf.Graph().as_default():
        assert get_optimizer(optimizer) is not optimizer
    with tf.Graph().as_default():  # a copy by the user has no first graph yet
        unused = copy.deepcopy(legacy.SGD(0.25))
        get_optimizer(unused)
        copied = copy.deepcopy(unused)
    with tf.Graph().as_default():
        assert get_optimizer(copied) is copied


def test_one_of_two_threads_has_the_given_keras_2_optimizer(legacy):
    found = []

    def get():
        with tf.Graph().as_default():
            found.append(get_optimizer(optimizer, iterations=tf1.train.get_or_create_global_step()))

    class AnotherThreadComesFirst:
        def __deepcopy__(self, memo):
            threads.append(threading.Thread(target=get))
            if len(threads) == 1:
                threads[0].start()
                threads[0].join()

    threads = []
    optimizer = legacy.SGD(0.25)
    optimizer.attribute = AnotherThreadComesFirst()
    get()
    assert [each is optimizer for each in found] == [True, False]


def test_a_keras_2_optimizer_is_freed_though_its_learning_rate_refers_to_it(legacy):
    def trained():
        optimizer = legacy.SGD(lambda: optimizer.rate)
        optimizer.rate = 0.25
        train(lambda: optimizer)
        return weakref.ref(optimizer)

    optimizer = trained()
    gc.collect()
    assert optimizer() is None


def test_settings_after_the_first_training_are_those_of_later_ones(legacy):
    optimizer = legacy.SGD(0.25)
    slopes = []
    for rate in (0.25, 0.5, lambda: tf.constant(0.125)):
        optimizer.learning_rate = rate
        values, _ = train(lambda: optimizer, steps=1)
        slopes.append(1 - values[0, 0])
    assert slopes == [0.25, 0.5, 0.125]
    optimizer.lr = 0.25
    optimizer.clipvalue = 0.5
    values, _ = train(lambda: optimizer, steps=1)
    assert values[0, 0] == 1 - 0.25 * 0.5
    assert optimizer.learning_rate == 0.25


def test_the_learning_rate_of_the_given_keras_2_optimizer_is_a_variable_of_its_graph(legacy):
    """Even if it was read before, an error in 2.15: reading makes a variable outside of the graph."""
    optimizer = legacy.SGD(0.25)
    train(lambda: optimizer)
    assert optimizer.learning_rate.name == "training/SGD/learning_rate:0"
    optimizer = legacy.SGD(0.25)
    assert optimizer.learning_rate.numpy() == 0.25
    values, _ = train(lambda: optimizer)
    np.testing.assert_allclose(values[:, 0], [0.75, 0.5, 0.25])


@pytest.mark.parametrize("name", ["apply_gradients", "get_gradients", "get_updates"])
@pytest.mark.parametrize("of", ["its class", "the object"])
def test_methods_of_the_given_keras_2_optimizer_are_called(legacy, name, of):
    sgd = legacy.SGD
    calls = []

    def noted(self, *args, **kwargs):
        calls.append(self)
        return getattr(sgd, name)(self, *args, **kwargs)

    if of == "its class":
        optimizer = type("Own", (sgd,), {name: noted})(0.25)
    else:
        optimizer = sgd(0.25)
        setattr(optimizer, name, lambda *args, **kwargs: noted(optimizer, *args, **kwargs))
    with open(os.devnull) as file:
        optimizer.file = file  # can't be copied
        values, _ = train(lambda: optimizer)
        np.testing.assert_allclose(values[:, 0], [0.75, 0.5, 0.25])
        assert [call is optimizer for call in calls] == [True]
        with pytest.raises(ValueError, match=r"another graph.*that makes it. Received: optimizer="):
            train(lambda: optimizer)


def test_a_mock_of_a_keras_2_optimizer_is_asked_for_updates(legacy):
    stand_in = mock.NonCallableMagicMock(wraps=legacy.SGD(0.25), spec=legacy.SGD)
    values, _ = train(lambda: stand_in)
    np.testing.assert_allclose(values[:, 0], [0.75, 0.5, 0.25])
    assert [call[0] for call in stand_in.mock_calls] == ["get_updates"]


class OwnUpdates:
    """The part of a Keras optimizer that has no settings."""

    def get_config(self):
        return {"name": "Own"}


def test_the_value_that_get_updates_returns_is_that_of_the_train_op(legacy, session):
    """As 2.15's tests of heads use it. 2.15 prints b'my_train_op6.50'."""

    class Fake(OwnUpdates, legacy.Optimizer):
        def get_updates(self, loss, params):
            return [tf.strings.join(["my_train_op", tf.strings.as_string(loss, precision=2)])]

    settings = {"optimizer": Fake("fake"), "trainable_variables": [tf1.get_variable("v", [])]}
    batch = {"logits": [[45.0], [41.0]], "labels": [[43.0], [44.0]]}
    spec = est.RegressionHead().create_estimator_spec({}, "train", **batch, **settings)
    session.run(tf1.global_variables_initializer())
    assert session.run(spec.train_op) == b"my_train_op6.50"  # (2^2 + 3^2) / 2
    assert session.run(tf1.train.get_global_step()) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [est.DNNRegressor, est.v1.DNNRegressor])
def test_minimize_of_a_v1_optimizer_of_the_users_own(kind):
    """2.15 passes the loss and the global step; a var_list only for one part of several."""
    calls = []

    class Own(tf1.train.GradientDescentOptimizer):
        def minimize(self, loss, global_step):
            calls.append("minimize")
            return super().minimize(loss, global_step)

    estimator = kind([2], [tf.feature_column.numeric_column("x")], optimizer=Own(0.25)).train(examples)
    assert calls == ["minimize"]
    assert estimator.get_variable_value("global_step") == 3


def test_minimize_of_the_users_own_has_the_variables_of_its_part(graph):
    calls = []

    class Own(tf1.train.GradientDescentOptimizer):
        def minimize(self, loss, global_step=None, var_list=None):
            calls.append((global_step, [variable.op.name for variable in var_list]))
            return super().minimize(loss, global_step, var_list)

    variables = [tf1.get_variable(name, []) for name in ("a", "b")]
    parts = [OptimizedPart(Own(0.25), [variable]) for variable in variables]
    minimize_parts(variables[0] * variables[1], parts)
    assert calls == [(None, ["a"]), (None, ["b"])]


def test_a_v1_optimizer_may_count_only_some_steps(session):
    """It applies the gradients of every second step, and counts then."""

    class EverySecond(tf1.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            calls = tf1.get_variable("calls", [], initializer=tf1.initializers.zeros())
            update = super().apply_gradients
            with tf.control_dependencies([calls.assign_add(1)]):
                is_second = tf.equal(calls.read_value() % 2, 0)
                return tf.cond(is_second, lambda: update(grads_and_vars, global_step), tf.no_op)

    vector = ones("vector")
    train_op = minimize(EverySecond(0.25), vector * 1.0)
    session.run(tf1.global_variables_initializer())
    for _ in range(5):
        session.run(train_op)
    assert session.run([vector, tf1.train.get_global_step()]) == [0.5, 2]


def trained_bias(optimizer):
    """The bias after two steps, with the loss (b - 2)^2 from 0."""
    estimator = est.BaselineRegressor(optimizer=optimizer).train(batch_of({"x": [[0.0]]}, [[2.0]], repeat=2))
    assert estimator.get_variable_value("global_step") == 2
    return estimator.get_variable_value("baseline/bias")


@pytest.mark.more
def test_get_updates_of_a_class_of_the_users_own(legacy):
    """As optimizers of Keras 1 and 2 were written, with nothing else."""

    def moved(loss, params):
        return [p.assign_sub(0.25 * g) for p, g in zip(params, tf.gradients(loss, params), strict=True)]

    class Shrinking(legacy.SGD):
        def get_updates(self, loss, params):
            penalty = tf.add_n([tf.reduce_sum(tf.square(param)) for param in params])
            return super().get_updates(loss + penalty, params)

    class Own(OwnUpdates, legacy.Optimizer):
        def get_updates(self, loss, params):
            return [self.iterations.assign_add(1), *moved(loss, params)]

    class OwnOfKeras3(keras3.optimizers.Optimizer):
        def get_updates(self, loss, params):
            return moved(loss, params)

    # The gradient of (b - 2)^2 + b^2 is 4 b - 4; steps of 0.125 from 0: 0.5, 0.75.
    assert trained_bias(Shrinking(0.125)) == pytest.approx([0.75])
    # Half of the way to 2 in each step.
    assert trained_bias(Own("Own")) == pytest.approx([1.5])
    assert trained_bias(OwnOfKeras3(0.1)) == pytest.approx([1.5])


def test_updates_that_read_the_step_in_a_function_leave_the_counting(legacy):
    class Own(OwnUpdates, legacy.Optimizer):
        def get_updates(self, loss, params):
            step = tf1.train.get_global_step()
            rate = tf.function(lambda: tf.where(step.read_value() < 1, 0.5, 0.25))()
            return [p.assign_sub(rate * g) for p, g in zip(params, tf.gradients(loss, params), strict=True)]

    values, _ = train(lambda: Own("Own"), steps=2)  # also looks at the global step
    np.testing.assert_allclose(values[:, 0], [0.5, 0.25])


@pytest.mark.parametrize("is_made_in_graph", [False, True])
def test_get_gradients_of_a_class_of_the_users_own(is_made_in_graph, legacy):
    """As optimizers with differential privacy are written; some have a state, a tensor of the graph."""

    class Halved(legacy.SGD):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.state = {"factor": (0.5 if tf.executing_eagerly() else tf.constant(0.5),)}

        def get_gradients(self, loss, params):
            (factor,) = self.state["factor"]
            return [factor * gradient for gradient in super().get_gradients(loss, params)]

    # The gradient of (b - 2)^2 is 2 b - 4, and half of it b - 2: from 0 to 0.5 and 0.875.
    assert trained_bias((lambda: Halved(0.25)) if is_made_in_graph else Halved(0.25)) == pytest.approx(
        [0.875]
    )
