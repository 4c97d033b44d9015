import pytest
import tensorflow as tf

from estimator_core.sdca.minimize import ExampleStates

tf1 = tf.compat.v1

KEYS = [[7, 1], [8, 1], [-9, 2]]  # negative fingerprints have a shard as well
STATES = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.5, 0.5, 0.5, 0.5]]


@pytest.mark.parametrize("num_shards", [1, 2, 5])
def test_states_are_remembered_whatever_the_number_of_shards(num_shards):
    with tf.Graph().as_default(), tf1.Session() as session:
        states = ExampleStates(num_shards)
        keys = tf.constant(KEYS, tf.int64)
        assert session.run(states.lookup(keys)).tolist() == [[0.0] * 4] * 3
        assert session.run(states.size()) == 0
        session.run(states.insert(keys, tf.constant(STATES)))
        backwards = tf.constant([*KEYS[::-1], [7, 2]], tf.int64)
        assert session.run(states.lookup(backwards)).tolist() == [*STATES[::-1], [0.0] * 4]
        # A state that is there is replaced.
        session.run(states.insert(keys[:1], tf.constant([[10.0, 0.0, 0.0, 0.0]])))
        assert session.run(states.size()) == 3
        assert session.run(states.totals()).tolist() == [15.5, 6.5, 7.5, 8.5]
        assert states.totals().dtype == tf.float64


def test_shards_have_the_names_of_checkpoints():
    with tf.Graph().as_default():
        ExampleStates(2)
        saveables = tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)
    assert [saveable.name.split(":")[0] for saveable in saveables] == [
        "ShardedMutableHashTable-1-of-2",
        "ShardedMutableHashTable-2-of-2",
    ]
