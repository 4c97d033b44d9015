"""Every variable has the same value after training, whatever way the graph runs."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.single_device import SingleDevice
from tests.circles import in_circles
from tests.contract.programs_in_a_loop import estimator_of
from tests.estimator_core.programs import assert_same, descent, values_of

STEPS = 7


def adam_model_fn(features, labels, mode):
    """Variables without names, and an optimizer with slots and powers of its own."""
    weights = tf1.Variable([[0.5], [-0.5]], trainable=True)
    loss = tf.reduce_mean(tf.square(features["x"] @ weights + tf1.Variable([0.1]) - labels))
    train_op = tf1.train.AdamOptimizer(0.05).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def keras_model_fn(features, labels, mode):
    """Keras layers; batch normalization updates its averages as it is called."""
    hidden = tf.keras.layers.Dense(3, activation="tanh")(features["x"])
    normalized = tf.keras.layers.BatchNormalization(momentum=0.8)(hidden, training=True)
    loss = tf.reduce_mean(tf.square(tf.keras.layers.Dense(1)(normalized) - labels))
    return est.EstimatorSpec(mode, loss=loss, train_op=descent(loss, 0.05))


def regularized_model_fn(features, labels, mode):
    """The loss is the sum of the collections of losses: a second model would be added to it."""
    settings = {"regularizer": lambda value: 0.3 * tf.reduce_sum(tf.square(value))}
    weights = tf1.get_variable("weights", [2, 1], initializer=tf1.ones_initializer(), **settings)
    tf1.losses.mean_squared_error(labels, features["x"] @ weights)
    loss = tf1.losses.get_total_loss()
    train_op = tf1.train.MomentumOptimizer(0.02, 0.9).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def canned(config):
    columns = [tf.feature_column.numeric_column("x", shape=[2])]
    return est.DNNRegressor([4, 3], columns, batch_norm=True, config=config)


MODELS = {
    "adam": estimator_of(adam_model_fn),
    "keras": estimator_of(keras_model_fn),
    "regularized": estimator_of(regularized_model_fn),
    "canned": canned,
}


def input_fn_for(num_replicas):
    """Returns an input whose batches differ from step to step; each replica gets the same one."""
    draws = np.random.default_rng(3)
    x = draws.normal(size=[STEPS, 4, 2]).astype(np.float32)
    y = draws.normal(size=[STEPS, 4, 1]).astype(np.float32)
    x, y = (np.repeat(values, num_replicas, axis=0) for values in (x, y))

    def input_fn(input_context=None):
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat()

    return input_fn


def trained(make, execution, start, directory, monkeypatch):
    """Returns all variables after some steps from a checkpoint."""
    if start is not None:
        shutil.copytree(start, directory)
    monkeypatch.setattr("estimator_core.estimator.select_execution", lambda config, mode: execution)
    estimator = make(est.RunConfig(model_dir=str(directory), tf_random_seed=7))
    steps = 1 if start is None else STEPS
    return values_of(estimator.train(input_fn_for(execution.num_replicas), steps=steps))


@pytest.fixture(scope="module", params=in_circles(sorted(MODELS), first=["adam"]))
def reference(request, tmp_path_factory):
    """A model, a checkpoint of it after a step, and its variables when one device goes on from it."""
    make = MODELS[request.param]
    root = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as monkeypatch:
        first = trained(make, SingleDevice(), None, root / "start", monkeypatch)
        last = trained(make, SingleDevice(), root / "start", root / "expected", monkeypatch)
    assert first["global_step"] == 1
    still = {name for name in first if np.array_equal(first[name], last[name])}
    assert {name.rpartition("/")[2] for name in still} <= {"learning_rate", "decay"}
    return make, root / "start", last


def test_all_variables_are_those_of_one_device(execution, reference, tmp_path, monkeypatch):
    make, start, expected = reference
    found = trained(make, execution, start, tmp_path / "model", monkeypatch)
    assert_same(found, expected, rtol=2e-5, atol=2e-6)


def test_the_model_is_built_once_for_each_replica_in_the_graph(execution, tmp_path, monkeypatch):
    graphs = []

    def model_fn(features, labels, mode):
        graphs.append(tf1.get_default_graph())
        return adam_model_fn(features, labels, mode)

    trained(estimator_of(model_fn), execution, None, tmp_path / "model", monkeypatch)
    assert len(graphs) == execution.num_models
    assert len(set(map(id, graphs))) == 1
