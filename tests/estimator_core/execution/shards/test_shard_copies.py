"""Random numbers that each shard draws by itself."""

import pytest
import tensorflow as tf

from estimator_core.execution.shards.shard_copies import ModelGraph
from tests.estimator_core.shard_programs import input_fn, model_fn

tf1 = tf.compat.v1


@pytest.mark.parametrize("seed", [None, 3])
def test_shards_draw_other_random_numbers(make_sharded, tmp_path, seed):
    seen = []

    def random_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        noise = tf1.random_uniform([1], seed=seed)
        note = (lambda noise: tf1.py_func(lambda n: seen.append(n.tolist()) or 0, [noise], tf.int64), [noise])
        return spec._replace(host_call=note)

    make_sharded(random_model_fn, num_shards=4).train(input_fn, steps=2)
    assert len({number for step in seen for number in step}) == 8


def test_stateless_random_numbers_are_the_same(make_sharded):
    """As on a TPU, whose cores run one program with one seed."""
    seen = []

    def random_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        noise = tf.random.stateless_uniform(
            [1], tf.stack([tf.constant(1, tf.int64), tf1.train.get_global_step()])
        )
        note = (lambda noise: tf1.py_func(lambda n: seen.append(n.tolist()) or 0, [noise], tf.int64), [noise])
        return spec._replace(host_call=note)

    make_sharded(random_model_fn, num_shards=4).train(input_fn, steps=2)
    assert [len(set(step)) for step in seen] == [1, 1]
    assert seen[0] != seen[1]


def test_the_functions_of_a_graph_are_read_once(graph, monkeypatch):
    weight, batch = tf.Variable(1.0), tf1.placeholder(tf.float32, [])
    before = len(graph.get_operations())
    for _ in range(3):
        tf.function(lambda x: weight.assign_add(x).read_value())(batch)
    operations = graph.get_operations()[before:]
    model = ModelGraph(operations, [batch], (), updates_once=True)
    read, calls = tf.Graph.as_graph_def, []
    monkeypatch.setattr(tf.Graph, "as_graph_def", lambda self: calls.append(1) or read(self))
    assert model.updates_by_one_shard([weight], (), operations) == [weight.name]
    assert len(calls) == 1
