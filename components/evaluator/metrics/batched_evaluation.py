"""Evaluates batches slice by slice, with results for TFMA's writers.

Replaces TFMA's MetricsPlotsAndValidationsEvaluator if every metric can be computed on arrays
(`batched_metrics`): the same slices, derived metrics, differences to the baseline and validation.
"""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue
from tensorflow_model_analysis.evaluators import metrics_validator
from tensorflow_model_analysis.metrics import binary_confusion_matrices, metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.metrics.batched_metrics import MetricsDict, Rows, Sums, all_sums
from components.evaluator.metrics.extraction import Batch
from components.evaluator.metrics.slices import SliceKey, Slices

_MAX_WAITING = 1 << 20  # predicted numbers of all slices together
_BYTES_OF_A_NUMBER = 64  # serialized examples count as so many numbers: at most 64 MiB wait

_POSITIVE, _NEGATIVE = "positive", "negative"
_CLASSES_OF_METRICS = {
    "AUC": ("auc", (_POSITIVE, _NEGATIVE)),
    "AUCPrecisionRecall": ("auc_precision_recall", (_POSITIVE,)),
    "Recall": ("recall", (_POSITIVE,)),
}
"""Default name by metric class, and the classes without which the metric has no value."""


@dataclass(frozen=True)
class Computations:
    """The computations of a configuration, in TFMA's order, each once."""

    sums: list[Sums]  # Sums over examples
    derived: list[metric_types.DerivedMetricComputation]  # Metrics computed from the sums
    has_plots: bool  # True if there is a plot among the results

    @classmethod
    def from_config(cls, eval_config: config_pb2.EvalConfig) -> "Computations | None":
        """Returns the computations; None if TFMA must do some of them example by example."""
        if not _is_covered(eval_config):
            return None
        computations = list(
            dict.fromkeys(
                metric_specs.to_computations(list(eval_config.metrics_specs), eval_config=eval_config)
            )
        )
        summed = [c for c in computations if isinstance(c, metric_types.MetricComputation)]
        derived = [c for c in computations if type(c) is metric_types.DerivedMetricComputation]
        sums = all_sums(summed)
        if sums is None or len(summed) + len(derived) < len(computations):
            return None
        keys = itertools.chain.from_iterable(c.keys for c in computations)
        has_plots = any(isinstance(key, metric_types.PlotKey) and not _is_private(key) for key in keys)
        return cls(sums, derived, has_plots)


class SliceBatch(beam.DoFn):
    """Turns a `Batch` into the rows of each slice."""

    def __init__(self, eval_config: config_pb2.EvalConfig, example_weight: str) -> None:
        super().__init__()
        self._slices = Slices(eval_config)
        self._example_weight = example_weight
        self._waiting: dict[SliceKey, list[Rows]] = {}
        self._num_waiting = 0

    def start_bundle(self) -> None:
        """Forgets the rows of a bundle that failed."""
        self._waiting, self._num_waiting = {}, 0

    def process(self, batch: Batch) -> Iterator[tuple[SliceKey, Rows]]:
        """Collects the rows of each slice, as a Keras metric takes milliseconds for any number of rows."""
        weights = None
        if self._example_weight:
            weights = batch.example_weights(self._example_weight)
        for slice_key, index in self._slices.split(batch):
            rows = Rows(
                labels=batch.labels[index],
                predictions={name: p[index] for name, p in batch.predictions.items()},
                weights=None if weights is None else weights[index],
                serialized=None if batch.serialized is None else batch.serialized[index],
            )
            self._waiting.setdefault(slice_key, []).append(rows)
            self._num_waiting += sum(p.size for p in rows.predictions.values())
            if rows.serialized is not None:
                self._num_waiting += sum(map(len, rows.serialized)) // _BYTES_OF_A_NUMBER
        if self._num_waiting >= _MAX_WAITING:
            yield from self._collected()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for rows in self._collected():
            yield GlobalWindows.windowed_value(rows)

    def _collected(self) -> Iterator[tuple[SliceKey, Rows]]:
        waiting, self._waiting, self._num_waiting = self._waiting, {}, 0
        for slice_key, parts in waiting.items():
            yield slice_key, Rows.concatenate(parts)


class CombineRows(beam.CombineFn):
    """Sums over the rows of a slice; outputs TFMA's metrics that derive from no other metric."""

    def __init__(self, eval_config: config_pb2.EvalConfig) -> None:
        self._eval_config = eval_config
        self._sums: list[Sums] | None = None

    def __reduce__(self) -> Any:
        return CombineRows, (self._eval_config,)  # each worker makes its own Keras metrics

    @property
    def _all(self) -> list[Sums]:
        if self._sums is None:
            computations = Computations.from_config(self._eval_config)
            if computations is None:
                raise ValueError("These metrics cannot be computed on arrays.")
            self._sums = computations.sums
        return self._sums

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], rows: Rows) -> list[Any]:
        return self.merge_accumulators([accumulator, [s.add(rows) for s in self._all]])

    def merge_accumulators(self, accumulators: Any) -> list[Any]:
        merged: list[Any] = []
        for accumulator in accumulators:
            if merged and accumulator:
                merged = [
                    s.merge(first, second)
                    for s, first, second in zip(self._all, merged, accumulator, strict=True)
                ]
            else:
                merged = merged or list(accumulator)
        return merged

    def extract_output(self, accumulator: list[Any]) -> MetricsDict:
        result: MetricsDict = {}
        for sums, values in zip(self._all, accumulator, strict=True):
            result.update(sums.output(values))
        return result


class Derive(beam.DoFn):
    """Completes the metrics of a slice: derived ones, and differences to the baseline."""

    def __init__(self, eval_config: config_pb2.EvalConfig) -> None:
        super().__init__()
        self._eval_config = eval_config
        self._needs_classes = _needs_classes(eval_config)
        self._derived: Sequence[metric_types.DerivedMetricComputation] = ()

    def setup(self) -> None:
        """Makes the computations, which cannot be pickled."""
        computations = Computations.from_config(self._eval_config)
        self._derived = computations.derived if computations else ()

    def process(self, sliced: tuple[SliceKey, MetricsDict]) -> Iterator[tuple[SliceKey, MetricsDict]]:
        slice_key, metrics = sliced
        metrics = dict(metrics)
        for computation in self._derived:
            metrics.update(computation.result(metrics))
        metrics.update(self._undefined(metrics))
        metrics = {key: value for key, value in metrics.items() if not _is_private(key)}
        metrics.update(self._differences(metrics))
        yield slice_key, metrics

    def _undefined(self, metrics: MetricsDict) -> MetricsDict:
        """Returns NaN for metrics that need classes which the slice lacks; TFMA returns 0."""
        classes = {
            key.model_name: {
                _POSITIVE: matrices.tp[0] + matrices.fn[0] > 0,
                _NEGATIVE: matrices.tn[0] + matrices.fp[0] > 0,
            }
            for key, matrices in metrics.items()
            if isinstance(matrices, binary_confusion_matrices.Matrices)
        }
        return {
            key: math.nan
            for key in metrics
            if isinstance(key, metric_types.MetricKey)
            and key.name in self._needs_classes
            and key.model_name in classes
            and not all(classes[key.model_name][kind] for kind in self._needs_classes[key.name])
        }

    def _differences(self, metrics: MetricsDict) -> MetricsDict:
        names = [spec.name for spec in self._eval_config.model_specs if spec.is_baseline]
        if not names:
            return {}
        return {
            key.make_diff_key(): value - metrics[baseline_key]
            for key, value in metrics.items()
            if not isinstance(key, metric_types.PlotKey)
            and key.model_name != names[0]
            and (baseline_key := key.make_baseline_key(names[0])) in metrics
            and isinstance(value, int | float | np.number | np.ndarray)
        }


def evaluate(
    batches: beam.PCollection, eval_config: config_pb2.EvalConfig, example_weight: str
) -> dict[str, beam.PCollection]:
    """Returns TFMA's evaluation of `Batch`es: metrics, plots and validations."""
    computations = Computations.from_config(eval_config)
    if computations is None:
        raise ValueError(f"These metrics cannot be computed on arrays: {eval_config}")
    results = (
        batches
        | "Slice" >> beam.ParDo(SliceBatch(eval_config, example_weight))
        | "Combine" >> beam.CombinePerKey(CombineRows(eval_config))
        | "Derive" >> beam.ParDo(Derive(eval_config))
    )
    metrics = results | "Metrics" >> beam.Map(_only, plots=False)
    evaluation = {
        tfma.METRICS_KEY: metrics,
        tfma.VALIDATIONS_KEY: metrics
        | "Validate" >> beam.Map(metrics_validator.validate_metrics, eval_config),
    }
    if computations.has_plots:
        evaluation[tfma.PLOTS_KEY] = results | "Plots" >> beam.Map(_only, plots=True)
    return evaluation


def _only(sliced: tuple[SliceKey, MetricsDict], plots: bool) -> tuple[SliceKey, MetricsDict]:
    slice_key, metrics = sliced
    return slice_key, {
        key: value for key, value in metrics.items() if isinstance(key, metric_types.PlotKey) == plots
    }


def _needs_classes(eval_config: config_pb2.EvalConfig) -> dict[str, tuple[str, ...]]:
    """Returns the classes that metrics need to have a value, by the name of the metric."""
    needs = {}
    for spec in eval_config.metrics_specs:
        for metric in spec.metrics:
            if metric.class_name in _CLASSES_OF_METRICS:
                default, classes = _CLASSES_OF_METRICS[metric.class_name]
                needs[json.loads(metric.config or "{}").get("name", default)] = classes
    return needs


def _is_private(key: metric_types.MetricKey) -> bool:
    return key.name.startswith("_") and not key.name.startswith("__")


def _is_covered(eval_config: config_pb2.EvalConfig) -> bool:
    options = eval_config.options
    return not (
        eval_config.cross_slicing_specs
        or any(spec.query_key for spec in eval_config.metrics_specs)
        or any(spec.slice_keys_sql for spec in eval_config.slicing_specs)
        or options.compute_confidence_intervals.value
        or options.min_slice_size.value > 1
    )
