import itertools
import pickle
import random
import tempfile
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from tensorflow_transform import analyzer_nodes, analyzers
from tensorflow_transform.beam import common

from components.transform import ordered_analysis

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def registered(node):
    return common._PTRANSFORM_BY_OPERATION_DEF_SUBCLASS[node].get_ptransform(None)[0]


def combined(kind, operation, values):
    """Returns the result of an implementation for values in this order."""
    with tempfile.NamedTemporaryFile() as file:
        pipeline = beam.Pipeline(RUNNER)
        inputs = pipeline | beam.Create(values, reshuffle=False)
        outputs = (inputs,) | kind(operation, None) | beam.combiners.ToList()
        _ = outputs | "Keep" >> beam.Map(_keep, file.name)
        pipeline.run().wait_until_finish()
        return pickle.loads(Path(file.name).read_bytes())


def _keep(outputs, path):
    Path(path).write_bytes(pickle.dumps(outputs))


def float32_sums():
    def add(values, axis):
        return np.sum(values, axis=axis, dtype=np.float32)

    return analyzers.NumPyCombiner(add, 0, [np.float32], [()])


def batches(count=40):
    draw = np.random.default_rng(4)
    return [(np.array(value, np.float32),) for value in draw.lognormal(0, 6, count)]


def orders(values, count=6):
    draw = random.Random(1)
    return [values, *(draw.sample(values, len(values)) for _ in range(count - 1))]


class Operation:
    """An operation of a graph of tf.Transform."""

    label = num_outputs = None

    def __init__(self, combiner):
        self.combiner = combiner


@pytest.mark.more
def test_sums_of_float32_depend_on_the_order_and_ours_do_not():
    accumulate = ordered_analysis._IMPLEMENTATIONS[analyzer_nodes.CacheableCombineAccumulate]
    stock = registered(analyzer_nodes.CacheableCombineAccumulate)
    operation = Operation(float32_sums())
    results = {}
    for kind in (accumulate, stock):
        results[kind] = {float(combined(kind, operation, values)[0][0]) for values in orders(batches())}
    assert len(results[stock]) > 1
    assert len(results[accumulate]) == 1
    (value,) = results[accumulate]
    assert value == pytest.approx(sum(float(batch[0]) for batch in batches()), rel=1e-5)


@pytest.mark.more
def test_quantiles_of_more_values_than_a_sketch_keeps_do_not_depend_on_the_order():
    combiner = analyzers.QuantilesCombiner(8, 0.05, np.float32, feature_shape=[1])
    values = np.random.default_rng(6).normal(size=(60, 2_000)).astype(np.float32)
    accumulate = ordered_analysis._IMPLEMENTATIONS[analyzer_nodes.CacheableCombineAccumulate]
    found = []
    for order in orders([(part,) for part in values], 3):
        (sketch,) = combined(accumulate, Operation(combiner), order)
        found.append(combiner.extract_output(sketch)[0].ravel())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    exact = np.quantile(values, np.arange(1, 8) / 8)
    ranks = [(values < boundary).mean() for boundary in found[0]]
    np.testing.assert_allclose(ranks, np.arange(1, 8) / 8, atol=0.05)
    assert exact.shape == found[0].shape


@pytest.mark.more
def test_accumulators_are_merged_in_one_order_and_without_batches_there_is_the_empty_result():
    merge = ordered_analysis._IMPLEMENTATIONS[analyzer_nodes.CacheableCombineMerge]
    accumulators = [list(batch) for batch in batches(12)]
    operation = Operation(float32_sums())
    found = {float(combined(merge, operation, order)[0][0]) for order in orders(accumulators)}
    assert len(found) == 1
    accumulate = ordered_analysis._IMPLEMENTATIONS[analyzer_nodes.CacheableCombineAccumulate]
    ((empty,),) = combined(accumulate, operation, [])
    assert empty == 0


@pytest.mark.more
def test_sums_per_key_do_not_depend_on_the_order():
    accumulate = ordered_analysis._IMPLEMENTATIONS[analyzer_nodes.CacheableCombinePerKeyAccumulate]
    merge = ordered_analysis._IMPLEMENTATIONS[analyzer_nodes.CacheableCombinePerKeyMerge]
    draw = np.random.default_rng(4)
    keys = np.array([b"a", b"b", b"c"], object)
    values = [(keys, draw.lognormal(0, 6, 3).astype(np.float32)) for _ in range(30)]
    operation = Operation(float32_sums())
    found = []
    for order in orders(values, 4):
        sums = combined(accumulate, operation, order)
        outputs = combined(merge, operation, sums)
        found.append({key: float(output[0]) for key, output in outputs})
    assert len(found[0]) == 3
    assert all(one == found[0] for one in found)
    expected = np.sum([value for _, value in values], axis=0, dtype=np.float64)
    np.testing.assert_allclose([found[0][key] for key in keys], expected, rtol=1e-5)


def test_the_stock_implementations_are_back_afterwards():
    before = {node: registered(node) for node in ordered_analysis._IMPLEMENTATIONS}
    with ordered_analysis.ordered_analysis():
        assert {node: registered(node) for node in before} == ordered_analysis._IMPLEMENTATIONS
    assert {node: registered(node) for node in before} == before
    with pytest.raises(KeyError), ordered_analysis.ordered_analysis():
        raise KeyError("x")
    assert {node: registered(node) for node in before} == before


def test_a_digest_tells_contents_apart_and_nothing_else():
    text = np.array([b"a", b"bc"], object)
    zeros = [np.zeros(shape, kind) for shape, kind in ((3, "f4"), (3, "i4"), ((3, 1), "f4"), (0, "f4"))]
    texts = [text, np.array([b"ab", b"c"], object), (text, text), [text], {"a": text}, {"b": text}]
    values = [*zeros, *texts, 1, 1.5, "1", b"1", None]
    digests = [ordered_analysis.digest(value) for value in values]
    for one, other in itertools.combinations(digests, 2):
        assert one != other
    turned = np.arange(6.0).reshape(2, 3)
    assert ordered_analysis.digest(turned) == ordered_analysis.digest(np.asfortranarray(turned))
    # Other objects with the same contents, as after a transport.
    copy = np.array([bytes([97]), bytes([98, 99])], object)
    assert ordered_analysis.digest(copy) == ordered_analysis.digest(text)
    assert ordered_analysis.digest({"a": 1, "b": 2}) == ordered_analysis.digest({"b": 2, "a": 1})
