"""Makes tf.Transform combine batches in an order that depends on their contents alone."""

import collections
import contextlib
import hashlib
import itertools
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_transform import analyzer_nodes
from tensorflow_transform.beam import analyzer_impls, common

_NUM_GROUPS = 16


@contextlib.contextmanager
def ordered_analysis() -> Iterator[None]:
    """Makes analyzers of pipelines built in this context combine batches in the same order each time.

    tf.Transform adds up results as they arrive and merges them by worker, so sums of floats are rounded
    differently, and the sketches of quantiles drop different values. In this context, the same batches give
    the same result, bit for bit. Tokens are counted by batch. Vocabularies with weights or by mutual
    information are excluded: their sums are float64, in any order.

    Source: the implementations that tf.Transform 1.21 registers for its analyzers.
    """
    stock = {
        node: common._PTRANSFORM_BY_OPERATION_DEF_SUBCLASS[node].get_ptransform(None)[0]
        for node in _IMPLEMENTATIONS
    }
    try:
        for node, implementation in _IMPLEMENTATIONS.items():
            common.register_ptransform(node)(implementation)
        yield
    finally:
        for node, implementation in stock.items():
            common.register_ptransform(node)(implementation)


def digest(value: Any) -> bytes:
    """Returns a digest of a value: an array, text, a number, or a container of them."""
    state = hashlib.blake2b(digest_size=16)
    for part in _parts(value):
        state.update(b"%d " % len(part))
        state.update(part)
    return state.digest()


def _parts(value: Any) -> Iterator[Any]:
    """Yields bytes that identify a value."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        yield f"{array.dtype.str}{array.shape}".encode()
        if array.dtype.hasobject:
            for item in array.ravel():
                yield from _parts(item)
        else:
            yield np.ascontiguousarray(array).data.cast("B") if array.size else b""
    elif isinstance(value, bytes):
        yield b"bytes"
        yield value
    elif isinstance(value, dict):
        yield b"dict"
        for key in sorted(value):
            yield from _parts(key)
            yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield b"list %d" % len(value)
        for item in value:
            yield from _parts(item)
    elif isinstance(value, str | int | float | None):
        yield repr(value).encode()
    else:  # such as a sketch of quantiles
        yield pickle.dumps(value)


class _InOrder(beam.CombineFn):
    """Collects values with their positions, and passes them on in order at the end."""

    def __init__(self, fold: Callable[[list[Any]], Any]) -> None:
        super().__init__()
        self._fold = fold

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], placed: tuple[Any, Any]) -> list[Any]:
        accumulator.append(placed)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return list(itertools.chain.from_iterable(accumulators))

    def extract_output(self, accumulator: list[Any]) -> Any:
        ordered = sorted(accumulator, key=operator.itemgetter(0))
        return self._fold([value for _, value in ordered])


class _Fold:
    """Adds values to one accumulator, in order."""

    def __init__(self, fn: beam.CombineFn) -> None:
        self._fn = fn

    def __call__(self, values: Iterable[Any]) -> Any:
        accumulator = self._fn.create_accumulator()
        for value in values:
            accumulator = self._fn.add_input(accumulator, value)
        return self._fn.compact(accumulator)


class _FoldAndExtract(_Fold):
    """Adds values to one accumulator, in order, and returns the output."""

    def __call__(self, values: Iterable[Any]) -> Any:
        return self._fn.extract_output(super().__call__(values))


class _Merge(_Fold):
    """Merges accumulators in order, and returns the output."""

    def __call__(self, values: Iterable[Any]) -> Any:
        accumulators = list(values) or [self._fn.create_accumulator()]
        return self._fn.extract_output(self._fn.merge_accumulators(accumulators))


def _place(value: Any) -> tuple[bytes, Any]:
    return digest(value), value


def _place_in_group(value: Any) -> tuple[int, tuple[bytes, Any]]:
    position = digest(value)
    return position[0] % _NUM_GROUPS, (position, value)


def _place_by_key(keyed: tuple[Any, Any]) -> tuple[Any, tuple[bytes, Any]]:
    key, value = keyed
    return key, _place(value)


def _combine_batches(batches: beam.PCollection, fn: beam.CombineFn) -> beam.PCollection:
    """Returns the output of all batches. Groups of batches are combined in parallel."""
    return (
        batches
        | "Place" >> beam.Map(_place_in_group)
        | "CombineGroups" >> beam.CombinePerKey(_InOrder(_Fold(fn)))
        | "CombineAll" >> beam.CombineGlobally(_InOrder(_Merge(fn)))
    )


def _wrap(combiner: Any, merges: bool) -> beam.CombineFn:
    return analyzer_impls._CombinerWrapper(combiner, is_combining_accumulators=merges)


class _Accumulate(beam.PTransform):
    """Batches -> one accumulator."""

    def __init__(self, operation: Any, extra_args: Any) -> None:
        del extra_args
        super().__init__()
        self._combiner = operation.combiner

    def expand(self, inputs: Any) -> beam.PCollection:
        (batches,) = inputs
        return _combine_batches(batches, _wrap(self._combiner, merges=False))


class _AccumulatePacked(beam.PTransform):
    """Batches -> the accumulators of several combiners, by label."""

    def __init__(self, operation: Any, extra_args: Any) -> None:
        del extra_args
        super().__init__()
        self._combiners = operation.combiners

    def expand(self, inputs: Any) -> beam.PCollection:
        (batches,) = inputs
        fn = analyzer_impls._PackedCombinerWrapper(self._combiners, is_combining_accumulators=False)
        keys = sorted({key for combiner in self._combiners for key in combiner.keys})
        return _combine_batches(
            batches | "Select" >> beam.Map(lambda batch: {key: batch[key] for key in keys}), fn
        )


class _Merges(_Accumulate):
    """Accumulators of several data sets -> the output."""

    def expand(self, inputs: Any) -> beam.PCollection:
        (accumulators,) = inputs
        return _merge_data_sets(accumulators, _wrap(self._combiner, merges=True))


class _MergePacked(_AccumulatePacked):
    """(label, accumulator) of several data sets -> the outputs by label."""

    def expand(self, inputs: Any) -> beam.PCollection:
        (accumulators,) = inputs
        fn = analyzer_impls._PackedCombinerWrapper(self._combiners, is_combining_accumulators=True)
        return _merge_data_sets(accumulators, fn)


def _merge_data_sets(accumulators: beam.PCollection, fn: beam.CombineFn) -> beam.PCollection:
    return (
        accumulators
        | "Place" >> beam.Map(_place)
        | "Merge" >> beam.CombineGlobally(_InOrder(_FoldAndExtract(fn)))
    )


class _AccumulatePerKey(_Accumulate):
    """Batches -> (key, accumulator)."""

    def expand(self, inputs: Any) -> beam.PCollection:
        (batches,) = inputs
        fn = _wrap(self._combiner, merges=False)
        return (
            batches
            | "AccumulateBatch" >> beam.FlatMap(_accumulate_keys, fn)
            | "Merge" >> beam.CombinePerKey(_InOrder(_Merge(fn)))
        )


def _accumulate_keys(batch: Any, fn: Any) -> Iterator[tuple[Any, tuple[bytes, Any]]]:
    """Yields each key of a batch with the accumulator of its rows and the position of the batch."""
    position = digest(batch)
    accumulators: dict[Any, Any] = {}
    for key, value in analyzer_impls._split_inputs_by_key(batch):
        if key not in accumulators:
            accumulators[key] = fn.create_accumulator()
        accumulators[key] = fn.add_input(accumulators[key], value)
    for key, accumulator in accumulators.items():
        yield key, (position, fn.compact(accumulator))


class _MergePerKey(_Accumulate):
    """(key, accumulator) of several data sets -> (key, output)."""

    def expand(self, inputs: Any) -> beam.PCollection:
        (accumulators,) = inputs
        fn = _wrap(self._combiner, merges=True)
        return (
            accumulators
            | "Place" >> beam.Map(_place_by_key)
            | "Merge" >> beam.CombinePerKey(_InOrder(_FoldAndExtract(fn)))
        )


class CountTokens(analyzer_impls._VocabularyAccumulateImpl):
    """Batches -> (token, number of times it occurs).

    Vocabularies with weights or by mutual information are left to tf.Transform.

    Source: the implementation of `VocabularyAccumulate` in tf.Transform 1.21.
    """

    def expand(self, inputs: Any) -> beam.PCollection:
        if self._vocab_ordering_type != analyzer_impls._VocabOrderingType.FREQUENCY:
            return super().expand(inputs)
        (batches,) = inputs
        return (
            batches
            | "CountInBatch" >> beam.FlatMap(count_tokens).with_output_types(Any)
            | "AddUp" >> beam.CombinePerKey(sum).with_input_types(Any).with_output_types(tuple[Any, int])
        )


def count_tokens(batch: tuple[np.ndarray]) -> Iterable[tuple[Any, int]]:
    (tokens,) = batch
    return collections.Counter(tokens.tolist()).items()


_IMPLEMENTATIONS = {
    analyzer_nodes.CacheableCombineAccumulate: _Accumulate,
    analyzer_nodes.CacheableCombineMerge: _Merges,
    analyzer_nodes.CacheableCombinePerKeyAccumulate: _AccumulatePerKey,
    analyzer_nodes.CacheableCombinePerKeyMerge: _MergePerKey,
    analyzer_nodes.PackedCombineAccumulate: _AccumulatePacked,
    analyzer_nodes.PackedCombineMerge: _MergePacked,
    analyzer_nodes.VocabularyAccumulate: CountTokens,
}
