import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.current import building
from estimator_core.execution.strategy import ReplicasInSync
from estimator_core.keras_in_graph import graph_variables
from tests.estimator_core.programs import counting


@pytest.mark.parametrize("make", [lambda: tf.Variable(1.0), lambda: keras.Variable(1.0)])
def test_local_variables_are_in_no_checkpoint(graph, make):
    variable, other = make(), tf.Variable(2.0)
    for _ in range(2):
        graph_variables.make_local([variable])
    assert tf1.global_variables() == [other]
    (local,) = tf1.local_variables()
    assert local is graph_variables.tf_variable(variable)


def test_only_random_states_become_global_again(graph):
    state, other = keras.random.SeedGenerator(3).state, keras.Variable(1.0, name="other")
    graph_variables.make_local([state, other])
    graph_variables.make_random_state_global([state, other])
    assert [v.op.name for v in tf1.global_variables()] == [state.value.op.name]
    assert [v.op.name for v in tf1.local_variables()] == [other.value.op.name]


def test_a_value_is_loaded_into_a_finalized_graph(graph, session):
    variable = keras.Variable([1.0, 2.0])
    graph.finalize()
    graph_variables.load_value(variable, np.float32([3.0, 4.0]), session)
    assert session.run(variable.value).tolist() == [3.0, 4.0]


def test_a_variable_of_two_replicas_is_collected_and_loaded_as_one():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    graph = tf.Graph()
    with graph.as_default(), building(graph, ReplicasInSync(strategy)):
        variable = keras.Variable(1.0)
        first, second = graph_variables.components(variable)
        graph_variables.keep_replicas_together(variable)
        assert [v is variable.value for v in tf1.global_variables()] == [True]
        with tf1.Session() as session:
            graph_variables.load_value(variable, np.float32(5.0), session)
            assert session.run([first, second]) == [5.0, 5.0]


@pytest.mark.more
def test_keras_objects_of_a_model_fn_count_the_batches_of_both_replicas(tmp_path):
    def model_fn(features, labels, mode):
        norm = keras.layers.BatchNormalization(momentum=0.5, center=False, scale=False, name="norm")
        norm(features, training=mode == "train")
        metric = keras.metrics.Mean(name="mean")
        metric.update_state(features)
        return counting(mode, tf.reduce_mean(features), eval_metric_ops={"mean": metric})

    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    config = est.RunConfig(train_distribute=strategy, eval_distribute=strategy)
    # One replica gets 1 and 4, the other 3 and 10.
    numbers = lambda: tf.data.Dataset.from_tensor_slices([[[1.0]], [[3.0]], [[4.0]], [[10.0]]])  # noqa: E731
    estimator = est.Estimator(model_fn, tmp_path, config).train(numbers)
    # One has 0.25 * 1 + 0.5 * 4 = 2.25, the other 0.25 * 3 + 0.5 * 10 = 5.75.
    np.testing.assert_allclose(estimator.get_variable_value("norm/moving_mean"), [4.0])
    assert estimator.evaluate(numbers)["mean"] == 4.5
