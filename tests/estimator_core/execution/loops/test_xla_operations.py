"""Operations that XLA compiles."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.xla_operations import COMPILED, can_be_compiled, fixed_inputs


def operations(make):
    with tf.Graph().as_default() as graph:
        make()
        library = graph.as_graph_def().library.function
    return {each.type: each for each in graph.get_operations()}, {
        each.signature.name: each for each in library
    }


def test_numbers_are_compiled_and_texts_are_not():
    def make():
        text = tf1.placeholder(tf.string, [3])
        tf.strings.length(text)
        tf.identity(text)
        tf.exp(tf1.placeholder(tf.float32, [3]))

    found, functions = operations(make)
    assert can_be_compiled(found["Exp"], functions)
    assert not can_be_compiled(found["StringLength"], functions)
    assert not can_be_compiled(found["Identity"], functions)  # XLA has it, but not of texts


def test_what_xla_would_not_check_is_left_out():
    assert not COMPILED & {
        "CheckNumerics", "ResourceGather", "ResourceScatterAdd", "SparseSoftmaxCrossEntropyWithLogits",
        "Unique", "Where",
    }  # fmt: skip


def test_a_divisor_of_integers_and_an_index_must_be_known():
    def make():
        whole = tf1.placeholder(tf.int32, [3])
        tf.raw_ops.FloorMod(x=whole, y=whole)
        tf.raw_ops.Div(x=tf.cast(whole, tf.float32), y=tf.cast(whole, tf.float32))
        tf.raw_ops.GatherV2(params=whole, indices=whole, axis=0)

    found, _ = operations(make)
    modulo, gather = found["FloorMod"], found["GatherV2"]
    assert [each.name for each in fixed_inputs(modulo)] == [modulo.inputs[1].name]
    assert fixed_inputs(found["Div"]) == []
    assert [each.name for each in fixed_inputs(gather)] == [gather.inputs[1].name, gather.inputs[2].name]


def test_a_function_is_compiled_if_all_that_it_calls_is(graph):
    def make():
        number = tf1.placeholder(tf.float32, [3])

        @tf.function
        def inner(value):
            return tf.debugging.check_numerics(value, "bad")

        tf.function(lambda value: tf.exp(value))(number)

        with tf.name_scope("bad"):
            tf.function(lambda value: inner(value) + 1)(number)

    make()
    functions = {each.signature.name: each for each in graph.as_graph_def().library.function}
    calls = [each for each in graph.get_operations() if each.type.endswith("PartitionedCall")]
    assert [can_be_compiled(each, functions) for each in calls] == [True, False]
