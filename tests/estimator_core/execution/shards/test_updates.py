"""Finding the variables that an operation updates, by itself or in the functions that it calls."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.shards.updates import called_functions, find_updated_handles


def in_function(a, b):
    @tf.function
    def inner():
        return a.assign_add(b.read_value()).read_value()

    return tf.function(inner)()


def in_branch(a, b):
    return tf.cond(tf1.placeholder(tf.bool), lambda: a.assign_add(b), b.read_value)


def in_case(a, b):
    return tf.switch_case(tf1.placeholder(tf.int32), [lambda: b.read_value(), lambda: a.assign(b)])


def in_loop(a, b):
    def body(i):
        with tf.control_dependencies([tf.function(lambda: a.assign_add(b).read_value())()]):
            return i + 1

    return tf.while_loop(lambda i: i < 3, body, [tf1.placeholder(tf.int32)])


def by_itself(a, b):
    return a.assign_add(b)


@pytest.mark.parametrize("update", [in_function, in_branch, in_case, in_loop, by_itself])
def test_only_what_is_updated_is_found(graph, update):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    before = set(graph.get_operations())
    update(a, b)
    created = [each for each in graph.get_operations() if each not in before]
    functions = called_functions(created)
    found = {tensor.op.name for each in created for tensor in find_updated_handles(each, functions)}
    assert found == {"a"}
