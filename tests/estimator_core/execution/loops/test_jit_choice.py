"""The choice of "auto" to compile or not."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.compiled_step import (
    NOT_COMPILED,
    CompiledSteps,
    cant_be_compiled,
    why_not_compiled,
)
from estimator_core.execution.loops.step_graph import StepGraph


def steps_of(layers, units, change=lambda values: values):
    data = tf.data.Dataset.from_tensors(tf.zeros([32, 8])).repeat()
    values = tf1.data.make_one_shot_iterator(data).get_next()
    for layer in range(layers):
        kernel = tf1.get_variable(f"kernel{layer}", [values.shape[1], units], use_resource=True)
        values = change(tf.nn.relu(values @ kernel))
    loss = tf.reduce_mean(tf.square(values))
    step = tf1.train.AdamOptimizer().minimize(loss)
    return CompiledSteps(StepGraph([step, loss.op]), step, loss)


@pytest.mark.parametrize(
    ("layers", "units", "reason"),
    [
        (3, 16, None),
        (1, 16, "operations of"),  # too few
        (3, 1500, "they mostly multiply matrices"),  # 32 * 1500 * 1500 products a layer, twice in gradients
    ],
)
def test_small_operations_are_compiled_if_there_are_enough(graph, layers, units, reason):
    steps = steps_of(layers, units)
    found = why_not_compiled(steps, chooses=True)
    assert why_not_compiled(steps, chooses=False) is None
    assert found is None if reason is None else reason in found


def test_a_convolution_is_left_as_it_is():
    def convolved(values):
        image = tf.reshape(values, [32, 4, 4, 1])
        filters = tf1.get_variable("filters", [2, 2, 1, 1], use_resource=True)
        image = tf.nn.conv2d(image, filters, strides=1, padding="SAME")
        return tf.reshape(image, [32, 16])

    with tf.Graph().as_default(), tf1.variable_scope("model", reuse=tf1.AUTO_REUSE):
        steps = steps_of(3, 16, convolved)
        assert "Conv2D" in why_not_compiled(steps, chooses=True)
        assert why_not_compiled(steps, chooses=False) is None


def test_the_error_and_the_log_say_why():
    text = str(cant_be_compiled("'x' (Where) cannot be compiled by XLA"))
    assert "'x' (Where) cannot be compiled by XLA" in text
    assert text.endswith("Received: jit_compile=True")
    assert "to 'auto' or False" in text
    assert NOT_COMPILED % "so" == "XLA does not compile training steps, as so."
