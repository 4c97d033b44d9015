from collections import Counter

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from tensorflow_transform import analyzer_nodes
from tensorflow_transform.analyzers import _VocabOrderingType as Ordering
from tensorflow_transform.beam import analyzer_impls

from components.transform.ordered_analysis import CountTokens, count_tokens

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def operation(ordering):
    return analyzer_nodes.VocabularyAccumulate(ordering)


@pytest.mark.parametrize("tokens", [[b"a", b"b", b"a", b"", b"a", b"c"], [3, 1, 3, -1, 3, 2**40]])
def test_tokens_are_counted_over_all_batches(tokens):
    dtype = object if isinstance(tokens[0], bytes) else np.int64
    batches = [(np.array(part, dtype),) for part in (tokens, tokens[:3], [], tokens[4:])]
    rows = Counter(tokens) + Counter(tokens[:3]) + Counter(tokens[4:])
    assert rows[tokens[0]] == 6
    for kind in (CountTokens, analyzer_impls._VocabularyAccumulateImpl):
        with beam.Pipeline(RUNNER) as pipeline:
            counts = (pipeline | beam.Create(batches),) | kind(operation(Ordering.FREQUENCY), None)
            assert_that(counts, equal_to(list(rows.items())))


def test_a_batch_sends_each_of_its_tokens_once():
    tokens = np.array([b"a"] * 500 + [b"b"], object)
    assert list(count_tokens((tokens,))) == [(b"a", 500), (b"b", 1)]


def test_weights_are_added_up_as_tf_transform_does():
    batch = (np.array([b"a", b"b", b"a"], object), np.array([0.5, 1, 2], np.float32))
    with beam.Pipeline(RUNNER) as pipeline:
        weighted = operation(Ordering.WEIGHTED_FREQUENCY)
        counts = (pipeline | beam.Create([batch]),) | CountTokens(weighted, None)
        assert_that(counts, equal_to([(b"a", 2.5), (b"b", 1.0)]))
