"""The global step that a learning rate schedule sees under a TPUEstimator."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.tpu.user_functions import model_fn_on_host, read_before_write
from tests.estimator_core.programs import zeros

NUM_STEPS = 60


class SignDescent(tf1.train.Optimizer):
    """An optimizer of one's own, as BERT has: its `apply_gradients` leaves the global step alone."""

    def __init__(self, learning_rate):
        super().__init__(use_locking=False, name="SignDescent")
        self._rate = learning_rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        del global_step
        updates = [
            variable.assign(variable - self._rate * tf.sign(grad)) for grad, variable in grads_and_vars
        ]
        return tf.group(*updates, name=name)


def bert_train_op(loss, learning_rate, wrap):
    optimizer = wrap(SignDescent(learning_rate))
    variables = tf1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    global_step = tf1.train.get_or_create_global_step()
    train_op = optimizer.apply_gradients(zip(gradients, variables, strict=True), global_step=global_step)
    return tf.group(train_op, [global_step.assign(global_step + 1)])


def minimize_train_op(loss, learning_rate, wrap):
    optimizer = wrap(tf1.train.GradientDescentOptimizer(learning_rate))
    return optimizer.minimize(loss, global_step=tf1.train.get_global_step())


def train(model_dir, train_op_of, wrap):
    """Trains for `NUM_STEPS`; returns the steps and rates that the schedule saw, and the weight."""
    seen = []

    def note(step, rate):
        seen.append((int(step), float(rate)))
        return rate

    def model_fn(features, labels, mode, params):
        loss = tf.square(zeros("weight") - labels[0])
        step = tf1.train.get_or_create_global_step()
        rate = tf1.train.polynomial_decay(1.0, step, NUM_STEPS, end_learning_rate=0.0)
        rate = tf.ensure_shape(tf.numpy_function(note, [step, rate], tf.float32), [])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op_of(loss, rate, wrap))

    estimator = tpu.TPUEstimator(
        model_fn, config=tpu.RunConfig(model_dir=str(model_dir)), use_tpu=False, train_batch_size=1
    )
    batch = ([0.0], [1000.0])
    estimator.train(lambda params: tf.data.Dataset.from_tensors(batch).repeat(), max_steps=NUM_STEPS)
    return seen, estimator.get_variable_value("weight")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrap", [tf1.tpu.CrossShardOptimizer, lambda optimizer: optimizer])
@pytest.mark.parametrize("train_op_of", [bert_train_op, minimize_train_op])
def test_a_schedule_sees_each_step_once_and_in_order(tmp_path, train_op_of, wrap):
    seen, weight = train(tmp_path, train_op_of, wrap)
    assert [step for step, _ in seen] == list(range(NUM_STEPS))
    expected = [1.0 - step / NUM_STEPS for step in range(NUM_STEPS)]
    np.testing.assert_allclose([rate for _, rate in seen], expected, atol=1e-6)
    if train_op_of is bert_train_op:
        # The weight goes up by the rate of each step: 60 - (0 + 1 + ... + 59) / 60.
        np.testing.assert_allclose(weight, 60 - 29.5, rtol=1e-5)


def pairs_in_order(graph):
    """Returns the (earlier, later) pairs of operation names that control inputs put in order."""
    return {
        (source.name, operation.name)
        for operation in graph.get_operations()
        for source in operation.control_inputs
    }


def test_reads_come_before_functions_and_these_before_writes(graph, session):
    """A race is lost too rarely for a test to see; so the order in the graph is checked."""
    step = tf1.train.create_global_step()
    read = tf.convert_to_tensor(step).op
    call = tf.function(lambda: step + 1)()
    write = step.assign_add(1, read_value=False)
    with tf.control_dependencies([write]):
        late_read = tf.convert_to_tensor(step)
    unused = tf.convert_to_tensor(step)
    read_before_write(tf.group(read, call, write, late_read))
    ordered = pairs_in_order(graph)
    call_op = next(op for op in graph.get_operations() if op.type == "StatefulPartitionedCall")
    assert {(read.name, call_op.name), (read.name, write.name), (call_op.name, write.name)} < ordered
    assert (late_read.op.name, write.name) not in ordered
    assert (unused.op.name, write.name) not in ordered
    session.run(tf1.global_variables_initializer())
    assert session.run(late_read) == 1


def test_a_tpu_estimator_asks_for_this_order(graph):
    def model_fn(features, mode, params):
        weight = zeros("weight")
        step = tf1.train.get_global_step()
        rate = tf.cast(step, tf.float32, "rate")
        count = step.assign_add(1, read_value=False)
        train_op = tf.group(weight.assign_sub(rate, read_value=False), count)
        return tpu.TPUEstimatorSpec(mode, loss=tf.constant(0.0), train_op=train_op)

    step = tf1.train.create_global_step()
    model_fn_on_host(model_fn, {})(features={}, mode=est.ModeKeys.TRAIN, params={})
    (count,) = [op for op in step.handle.consumers() if op.type == "AssignAddVariableOp"]
    assert (graph.get_operation_by_name("rate").inputs[0].op.name, count.name) in pairs_in_order(graph)


def test_a_train_op_that_reads_what_it_wrote(session):
    """No order is added that would make a cycle."""
    step = tf1.train.create_global_step()
    first = step.assign(step + 1)
    with tf.control_dependencies([first]):
        second = step.assign(step * 10)
    read_before_write(tf.group(second))
    session.run(tf1.global_variables_initializer())
    session.run(second.op)
    assert session.run(step) == 10


def test_variables_that_are_no_resources(graph):
    """Their reads are no copies: operations that take the value have to come before the write."""
    with tf1.variable_scope("", use_resource=False):
        step = tf1.train.create_global_step()
    rate = tf.cast(step, tf.float32, "rate")
    write = tf1.assign_add(step, 1).op
    read_before_write(tf.group(rate, write))
    assert (rate.op.name, write.name) in pairs_in_order(graph)
