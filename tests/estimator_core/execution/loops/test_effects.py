"""Operations that have an effect."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.effects import stateful_operations


def types(outputs):
    return sorted(effect.type for effect in stateful_operations(outputs))


def test_a_metric_has_the_effects_of_its_update_and_not_its_value(graph, session):
    iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(5))
    value, update = tf1.metrics.mean(iterator.get_next())
    before = len(graph.get_operations())
    effects = stateful_operations([update])
    assert len(graph.get_operations()) == before
    assert types([update]) == ["AssignAddVariableOp"] * 2 + ["IteratorGetNext"]
    assert update.op not in effects
    session.run([tf1.local_variables_initializer(), iterator.initializer])
    for _ in range(3):
        session.run(tf.group(*effects))
    assert session.run(value) == 1  # the mean of 0, 1 and 2


def test_checks_prints_and_functions_count_and_reads_do_not(graph):
    @tf.function
    def adding(x):
        return x + 1

    weight = tf1.get_variable("w", [4], use_resource=True)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), 0)
    assert types([tf.gather(weight, table.lookup(tf.constant([1]))) * 2]) == []
    with tf.control_dependencies([tf1.assert_less(weight, 3.0), tf.print("x")]):
        checked = tf.identity(weight)
    assert types([checked]) == ["If", "PrintV2"]  # the check is in the branch
    assert types([tf1.random_uniform([2])]) == ["RandomUniform"]
    assert "AssignAddVariableOp" in types([adding(weight.assign_add(tf.ones([4])))])


def test_what_is_of_tensorflow_1_is_left_as_it_is(graph):
    old = tf1.get_variable("w", [], initializer=tf1.zeros_initializer(), use_resource=False)
    outputs = [tf1.assign_add(old, 1.0)]
    assert stateful_operations(outputs) == outputs
