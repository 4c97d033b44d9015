"""Heads and optimizers find the Execution that their graph is built for."""

import gc
import threading
import weakref

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.current import building, current_execution
from estimator_core.execution.single_device import SingleDevice


class Scoped(SingleDevice):
    """An Execution whose scope shows in the names of operations."""

    def scope(self):
        return tf.name_scope("scoped")


def test_its_scope_is_open_while_the_graph_is_built():
    execution = Scoped()
    with tf.Graph().as_default() as graph:
        with building(graph, execution):
            assert current_execution() is execution
            assert tf.constant(1.0).name.startswith("scoped/")
        assert not tf.constant(1.0).name.startswith("scoped/")
        assert current_execution() is execution  # the graph is still its


def test_each_graph_has_its_own_and_other_code_is_on_one_device():
    one, two = Scoped(), Scoped()
    with tf.Graph().as_default() as outer, building(outer, one):
        with tf.Graph().as_default() as inner, building(inner, two):
            assert current_execution() is two
        assert current_execution() is one
        with tf.Graph().as_default():
            assert type(current_execution()) is SingleDevice
    assert type(current_execution()) is SingleDevice  # eager code


def test_functions_and_branches_belong_to_the_graph_around_them():
    execution, found = Scoped(), []

    def branch():
        found.append(current_execution())
        return tf.constant(1.0)

    with tf.Graph().as_default() as graph, building(graph, execution):
        tf.cond(tf1.placeholder(tf.bool, []), branch, branch)
        tf.map_fn(lambda x: x * branch(), tf.ones([2]))
    assert len(found) >= 3
    assert all(each is execution for each in found)


def test_threads_of_the_same_graph_find_the_same():
    execution, found = Scoped(), []
    with tf.Graph().as_default() as graph, building(graph, execution):

        def other_thread():
            with graph.as_default():
                found.append(current_execution())

        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert found == [execution]


def test_a_strategy_of_the_users_own_is_asked():
    """Heads and optimizers are used outside of Estimators, too."""
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategy.scope():
        execution = current_execution()
        assert execution.strategy is strategy
        assert execution.num_replicas == 2
    with tf.Graph().as_default():
        with strategy.scope():
            assert current_execution().num_replicas == 2
        assert current_execution().num_replicas == 1


def test_a_graph_that_is_forgotten_is_freed():
    graph = tf.Graph()
    with graph.as_default(), building(graph, SingleDevice()):
        pass
    seen = weakref.ref(graph)
    del graph
    gc.collect()
    assert seen() is None
