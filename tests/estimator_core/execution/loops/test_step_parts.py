"""Dividing a step into a compiled part and the rest."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.step_graph import StepGraph
from estimator_core.execution.loops.step_parts import AFTER, BEFORE, COMPILED_PART, StepParts


def parts_of(make_loss):
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensors(tf.zeros([6, 4])).repeat()
        data = data.map(lambda each: each[: tf.cast(tf.reduce_sum(each), tf.int32) + 5])
        batch = tf1.data.make_one_shot_iterator(data).get_next()
        assert batch.shape.as_list() == [None, 4]
        loss = make_loss(batch, tf1.get_variable("weight", [4, 2], use_resource=True))
        step = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        return StepParts(StepGraph([step, loss.op]), (step, loss)), step


def part(parts, kind):
    return {parts.part_of[each.name] for each in parts.order if each.type == kind}


def test_a_dense_step_is_compiled_but_for_its_input():
    parts, step = parts_of(lambda batch, weight: tf.reduce_mean(tf.square(batch @ weight)))
    assert part(parts, "IteratorGetNext") == {BEFORE}
    for kind in ("MatMul", "Square", "ReadVariableOp", "ResourceApplyGradientDescent"):
        assert part(parts, kind) == {COMPILED_PART}, kind
    assert parts.part_of[step.name] == COMPILED_PART
    assert AFTER not in parts.part_of.values()


def test_shapes_follow_from_the_size_of_a_batch():
    parts, _ = parts_of(lambda batch, weight: tf.reduce_mean(batch @ weight, name="loss"))
    (product,) = (each for each in parts.order if each.name == "matmul")
    assert parts.infer_shapes(7)[product.outputs[0].name] == [7, 2]
    assert parts.infer_shapes(9)[product.outputs[0].name] == [9, 2]


def test_a_shape_that_the_values_decide_is_not_compiled():
    def make_loss(batch, weight):
        return tf.reduce_mean(tf.boolean_mask(batch, batch[:, 0] > 0) @ weight)

    parts, _ = parts_of(make_loss)
    assert part(parts, "Where") == {BEFORE}
    assert COMPILED_PART not in part(parts, "MatMul")


def test_what_follows_the_compiled_part_and_is_not_compiled_comes_after_it():
    def make_loss(batch, weight):
        loss = tf.reduce_mean(tf.square(batch @ weight))
        with tf.control_dependencies([tf.print(loss)]):
            return tf.identity(loss)

    parts, step = parts_of(make_loss)
    # The print comes before the loss, so that the operations it needs can't be compiled.
    assert part(parts, "PrintV2") == {BEFORE}
    assert BEFORE in part(parts, "MatMul")
    assert parts.part_of[step.name] != BEFORE


def test_a_check_of_shapes_is_no_reason_against_compiling():
    def make_loss(batch, weight):
        logits = batch @ weight
        is_equal = tf.equal(tf.shape(logits)[0], tf.shape(batch)[0])
        with tf.control_dependencies([tf.raw_ops.Assert(condition=is_equal, data=["unequal"])]):
            return tf.reduce_mean(tf.square(logits))

    parts, _ = parts_of(make_loss)
    assert part(parts, "Assert") == {COMPILED_PART}
    assert part(parts, "MatMul") == {COMPILED_PART}
