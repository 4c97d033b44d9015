"""The decision if a step takes place, and the variables that a task changes by its own batches.

Tasks that end together are tested in tests/integration/cluster.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.cluster.collectives import Peers, Watch
from estimator_core.execution.cluster.inputs_in_step import InputsInStep, changed_by_batches
from estimator_core.execution.cluster.server import Task

pytestmark = pytest.mark.usefixtures("graph")


def peers(workers):
    return Peers([Task("worker", i, f"host{i}:1") for i in range(workers)], 0)


@pytest.fixture
def inputs(graph):
    dataset = tf.data.Dataset.from_tensors(({"x": [1.0]}, [2.0]))
    return InputsInStep(dataset, "train", peers(3), Watch(peers(3)))


def test_all_have_batches(inputs):
    np.testing.assert_array_equal(inputs._check(np.array([0, 0, 0])), [0, 0, 0])
    assert not inputs.is_at_end


@pytest.mark.parametrize(
    ("states", "is_at_end", "why"),
    [
        ([0, 1, 1], True, "the input of worker 1 at host1:1, worker 2 at host2:1 has ended."),
        ([2, 0, 0], False, "worker 0 at host0:1 stopped."),
        ([2, 1, 0], True, "the input of worker 1 at host1:1 has ended, and worker 0 at host0:1 stopped"),
    ],
)
def test_one_does_not_take_part(inputs, states, is_at_end, why):
    with pytest.raises(StopIteration, match=f"Training ends in all tasks: {why}"):
        inputs._check(np.array(states))
    assert inputs.is_at_end is is_at_end
    inputs.begin()
    assert not inputs.is_at_end


def test_batches_have_the_structure_of_the_dataset(inputs):
    (first, labels), (second, _) = inputs.next_batches(2)
    assert first["x"].shape == second["x"].shape == labels.shape == [1]
    assert {operation.type for operation in inputs.batches} == {"OptionalGetValue"}


def test_an_element_of_three_is_refused():
    with pytest.raises(ValueError, match="3 elements"):
        InputsInStep(tf.data.Dataset.from_tensors((1, 2, 3)), "train", peers(2), Watch(peers(2)))


def test_only_the_average_of_batches_is_local():
    """Not what an optimizer changes, a counter, or a number of examples; without batches nothing is."""
    average, weight, counter, examples, _ = (
        tf1.get_variable(name, [], tf.int32 if name == "examples" else tf.float32, use_resource=True)
        for name in ("average", "weight", "counter", "examples", "untouched")
    )
    batch = tf1.placeholder(tf.float32, [None])
    mean = tf.reduce_mean(batch)
    average.assign(0.9 * average + 0.1 * mean)
    weight.assign_sub(peers(2).sum(mean * weight, 9))
    counter.assign_add(1.0)
    examples.assign_add(tf.size(batch))
    variables = tf1.global_variables()
    found = changed_by_batches(variables, lambda variable: (variable,), [batch.op])
    assert [variable.name for variable in found] == ["average:0"]
    assert changed_by_batches(variables, lambda variable: (variable,), []) == []
