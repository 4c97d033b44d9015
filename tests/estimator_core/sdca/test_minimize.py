"""The states of examples, and one step by hand.

A single example of least squares has a dual whose maximum is known in closed form.
"""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.experimental import LinearSDCA
from estimator_core.sdca.examples import DenseFeature, Examples
from estimator_core.sdca.minimize import ExampleStates, minimize
from tests.estimator_core.programs import zeros

KEYS = [[7, 1], [8, 1], [-9, 2]]  # negative fingerprints have a shard as well
STATES = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.5, 0.5, 0.5, 0.5]]


@pytest.mark.parametrize("num_shards", [1, 2, 5])
def test_states_are_remembered_whatever_the_number_of_shards(session, num_shards):
    states = ExampleStates(num_shards)
    saveables = tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)  # in checkpoints by these names
    assert [saveable.name.split(":")[0] for saveable in saveables] == [
        f"ShardedMutableHashTable-{shard + 1}-of-{num_shards}" for shard in range(num_shards)
    ]
    keys = tf.constant(KEYS, tf.int64)
    assert session.run(states.lookup(keys)).tolist() == [[0.0] * 4] * 3
    assert session.run(states.size()) == 0
    session.run(states.insert(keys, tf.constant(STATES)))
    backwards = tf.constant([*KEYS[::-1], [7, 2]], tf.int64)
    assert session.run(states.lookup(backwards)).tolist() == [*STATES[::-1], [0.0] * 4]
    # An existing state is replaced.
    session.run(states.insert(keys[:1], tf.constant([[10.0, 0.0, 0.0, 0.0]])))
    assert session.run(states.size()) == 3
    assert session.run(states.totals()).tolist() == [15.5, 6.5, 7.5, 8.5]
    assert states.totals().dtype == tf.float64


@pytest.fixture
def step():
    """Returns a function that makes steps on x = 2 with label 3, from weight 0, and reads the variables."""

    def run(steps=1, **settings):
        with tf.Graph().as_default(), tf1.Session() as session:
            tf1.train.create_global_step()
            weight = zeros("weight", [1, 1])
            dense = [DenseFeature(tf.constant([[2.0]]), weight)]
            examples = Examples(tf.constant(["only"]), tf.constant([3.0]), tf.constant([1.0]), [], dense)
            loss = tf.reduce_sum(tf.square(2.0 * weight - 3.0)) / 2.0
            states = ExampleStates(1)
            sdca = LinearSDCA("id", **settings)
            train_op = minimize(sdca, "squared_loss", examples, states, loss, "linear")
            summaries = {tensor.op.name: tensor for tensor in tf1.get_collection(tf1.GraphKeys.SUMMARIES)}
            session.run(tf1.global_variables_initializer())
            for _ in range(steps):
                session.run(train_op)
            tags = {}
            for serialized in session.run(list(summaries.values())):
                for value in tf1.Summary.FromString(serialized).value:
                    tags[value.tag] = value.simple_value
            variables = session.run({v.op.name: v for v in tf1.global_variables()})
            return variables, tags, [v.op.name for v in tf1.trainable_variables()]

    return run


@pytest.mark.parametrize("l2", [1.0, 4.0])
def test_one_example_is_solved_in_one_step(step, l2):
    """The least of (2 w - 3)^2 / 2 + l2 w^2 / 2 is where 2 (2 w - 3) + l2 w = 0: w = 6 / (4 + l2)."""
    variables, tags, trainable = step(symmetric_l2_regularization=l2)
    assert variables["weight"].item() == pytest.approx(6 / (4 + l2), rel=1e-5)
    assert variables["weight_unshrunk"].item() == pytest.approx(6 / (4 + l2), rel=1e-5)
    assert variables["global_step"] == 1
    assert trainable == ["weight"]
    assert set(tags) == {"linear/approximate_duality_gap", "linear/examples_seen"}
    assert tags["linear/examples_seen"] == 1.0


def test_l1_shrinks_what_the_ascent_works_on(step):
    """The slope for w > 0 is 2 (2 w - 3) + l2 w + l1 = 0, with l1 = 1 and l2 = 2: w = 5 / 6."""
    variables, _, _ = step(steps=30, symmetric_l1_regularization=1.0, symmetric_l2_regularization=2.0)
    assert variables["weight"].item() == pytest.approx(5 / 6, rel=1e-4)
    # The threshold is l1 / l2.
    assert variables["weight_unshrunk"].item() == pytest.approx(5 / 6 + 0.5, rel=1e-4)
    assert variables["global_step"] == 30


def test_l1_can_leave_nothing(step):
    variables, _, _ = step(steps=3, symmetric_l1_regularization=7.0)
    assert variables["weight"].item() == 0.0  # the slope at 0 is -6
