"""Counts the tokens of a vocabulary by batch, so that a token of a row is no element of its own in Beam."""

import collections
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_transform.beam import analyzer_impls


class CountTokens(analyzer_impls._VocabularyAccumulateImpl):
    """Batches -> (token, number of times it occurs).

    Vocabularies with weights or by mutual information are left to tf.Transform.

    Source: the implementation of `VocabularyAccumulate` in tf.Transform 1.21.
    """

    def expand(self, inputs: Any) -> beam.PCollection:
        """Returns the counts."""
        if self._vocab_ordering_type != analyzer_impls._VocabOrderingType.FREQUENCY:
            return super().expand(inputs)
        (batches,) = inputs
        return (
            batches
            | "CountInBatch" >> beam.FlatMap(_count).with_output_types(Any)
            | "AddUp"
            >> beam.CombinePerKey(sum).with_input_types(Any).with_output_types(tuple[Any, int])
        )


def _count(batch: tuple[np.ndarray]) -> Iterable[tuple[Any, int]]:
    """Returns each token of a batch and its number."""
    (tokens,) = batch
    return collections.Counter(tokens.tolist()).items()
