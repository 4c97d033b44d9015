"""The decision if a step takes place. Tasks that end together are tested in tests/integration/cluster."""

import numpy as np
import pytest
import tensorflow as tf

from estimator_core.execution.cluster.collectives import Peers, Watch
from estimator_core.execution.cluster.inputs_in_step import InputsInStep
from estimator_core.execution.cluster.server import Task


@pytest.fixture
def inputs():
    peers = Peers([Task("worker", i, f"host{i}:1") for i in range(3)], 0)
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_tensors(({"x": [1.0]}, [2.0]))
        yield InputsInStep(dataset, "train", peers, Watch(peers))


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
    peers = Peers([Task("worker", i, f"host{i}:1") for i in range(2)], 0)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="3 elements"):
        InputsInStep(tf.data.Dataset.from_tensors((1, 2, 3)), "train", peers, Watch(peers))
