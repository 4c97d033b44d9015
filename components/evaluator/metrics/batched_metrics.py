"""TFMA's metrics over whole arrays instead of example by example.

TFMA computes a metric in two steps: combiners reduce examples to sums (histograms, confusion matrices,
totals), and derived computations turn the sums into metrics. The second step is TFMA's own here. The first
one is done with NumPy on thousands of examples at a time, in a hundredth of the time, for the combiners of
the common metrics. `make_sums` returns None for other computations.

The combiners are internals of the locked TFMA version; the tests compare every metric with TFMA's
own path. One difference is intended: TFMA 0.52 counts the first part of the data twice in mean
squared and absolute errors when it merges accumulators.
"""

import abc
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis.contrib.aggregates import binary_confusion_matrices as aggregates
from tensorflow_model_analysis.metrics import (
    binary_confusion_matrices,
    calibration,
    calibration_histogram,
    example_count,
    mean_regression_error,
    metric_types,
    squared_pearson_correlation,
    tf_metric_wrapper,
)
from tensorflow_model_analysis.utils.keras_lib import tf_keras

from components.evaluator.metrics import model_metrics
from components.evaluator.metrics.sklearn_metrics import StatisticCombiner, group, measure

# TFMA has no public names for these; see the module's docstring.
_KerasCombiner = tf_metric_wrapper._CompilableMetricsCombiner  # noqa: SLF001
_MatrixCombiner = binary_confusion_matrices._BinaryConfusionMatrixCombiner  # noqa: SLF001
_HistogramCombiner = calibration_histogram._CalibrationHistogramCombiner  # noqa: SLF001
_TotalsCombiner = calibration._WeightedLabelsPredictionsExamplesCombiner  # noqa: SLF001
_TotalsResult = calibration._WeightedLabelsPredictionsExamples  # noqa: SLF001
_CountCombiner = example_count._ExampleCountCombiner  # noqa: SLF001
_SquaredErrorCombiner = mean_regression_error._MeanSquaredErrorCombiner  # noqa: SLF001
_AbsoluteErrorCombiner = mean_regression_error._MeanAbsoluteErrorCombiner  # noqa: SLF001
_PearsonCombiner = squared_pearson_correlation._SquaredPearsonCorrelationCombiner  # noqa: SLF001
_KerasMean = tf_keras.metrics.Mean
_MatrixEntry = aggregates._ThresholdEntry  # noqa: SLF001

Array: TypeAlias = npt.NDArray[Any]
MetricsDict = dict[metric_types.MetricKey, Any]


@dataclass(frozen=True)
class Rows:
    labels: Array  # `[n]` or `[n, label_dimension]`
    predictions: Mapping[str, Array]  # Predictions by model name, `[n]` or `[n, prediction_dimension]`
    weights: Array | None  # `[n]`; None without weights
    serialized: Array | None = None  # tf.Examples `[n]`; None if no metric reads them

    @classmethod
    def concatenate(cls, parts: Sequence["Rows"]) -> "Rows":
        return cls(
            np.concatenate([part.labels for part in parts]),
            {
                name: np.concatenate([part.predictions[name] for part in parts])
                for name in parts[0].predictions
            },
            _concatenate([part.weights for part in parts]),
            _concatenate([part.serialized for part in parts]),
        )

    def flat(self, key: metric_types.MetricKey) -> tuple[Array, Array, Array]:
        """Returns labels, predictions and weights of a metric, one for each number: all `[m]`.

        A class id with probabilities becomes a number for each class, 1 for the right one.
        """
        predictions = self.predictions[key.model_name].astype(np.float64)
        labels = self.labels
        if predictions.ndim == 2 and labels.ndim == 1:
            labels = labels[:, np.newaxis] == np.arange(predictions.shape[1])
        weights = self.example_weights(key)
        if predictions.ndim == 2:
            weights = np.repeat(weights, predictions.shape[1])
        return labels.astype(np.float64).ravel(), predictions.ravel(), weights

    def example_weights(self, key: metric_types.MetricKey) -> Array:
        """Returns the weights of the examples, 1 if the metric or the data has none: `[n]`."""
        if self.weights is None or not key.example_weighted:
            return np.ones(len(self.labels))
        return self.weights.astype(np.float64)


class Sums(abc.ABC):
    """Sums over examples that replace a TFMA combiner. Sums are arrays, or tuples of arrays."""

    def __init__(self, computation: metric_types.MetricComputation) -> None:
        self._key = computation.keys[0]

    @abc.abstractmethod
    def add(self, rows: Rows) -> Any:
        """Returns the sums over some examples."""

    def merge(self, first: Any, second: Any) -> Any:
        return first + second

    @abc.abstractmethod
    def output(self, sums: Any) -> MetricsDict:
        """Returns the metrics that the combiner outputs."""


class _ExampleCount(Sums):
    def __init__(self, computation: metric_types.MetricComputation) -> None:
        self._keys = computation.keys
        self._weighted = computation.combiner._example_weighted  # noqa: SLF001

    def add(self, rows: Rows) -> Array:
        if self._weighted and rows.weights is not None:
            return np.array([rows.weights.astype(np.float64).sum()])
        return np.array([float(len(rows.labels))])

    def output(self, sums: Array) -> MetricsDict:
        return {key: float(sums[0]) for key in self._keys}


class _Totals(Sums):
    def add(self, rows: Rows) -> Array:
        labels, predictions, weights = rows.flat(self._key)
        return np.array([labels @ weights, predictions @ weights, weights.sum()])

    def output(self, sums: Array) -> MetricsDict:
        totals = _TotalsResult()
        totals.total_weighted_labels = float(sums[0])
        totals.total_weighted_predictions = float(sums[1])
        totals.total_weighted_examples = float(sums[2])
        return {self._key: totals}


class _Histogram(Sums):
    """Sums are sparse, as most buckets of a small slice are empty: bucket ids, and a row for each."""

    def __init__(self, computation: metric_types.MetricComputation) -> None:
        combiner = computation.combiner
        super().__init__(computation)
        self._num_buckets = combiner._num_buckets  # noqa: SLF001
        self._left = combiner._left  # noqa: SLF001
        self._range = combiner._range  # noqa: SLF001
        self._by_prediction = combiner._prediction_based_bucketing  # noqa: SLF001
        self._fractional = combiner._fractional_labels  # noqa: SLF001

    def add(self, rows: Rows) -> tuple[Array, Array]:
        labels, predictions, weights = rows.flat(self._key)
        if self._fractional:
            _check_probabilities(labels, self._key)
        position = predictions if self._by_prediction else labels
        if not np.isfinite(position).all():
            raise ValueError(
                f"{self._key.name}: the model predicts values that are not numbers (NaN or infinite)."
            )
        buckets = (position - self._left) / self._range * self._num_buckets + 1
        ids = np.clip(np.trunc(buckets), 0, self._num_buckets + 1).astype(np.int64)
        return group(ids, np.stack([labels * weights, predictions * weights, weights], axis=1))

    def merge(self, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        return group(np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))

    def output(self, sums: tuple[Array, Array]) -> MetricsDict:
        return {
            self._key: [
                calibration_histogram.Bucket(bucket_id, *values)
                for bucket_id, values in zip(sums[0].tolist(), sums[1].tolist(), strict=True)
            ]
        }


class _ConfusionMatrices(Sums):
    def __init__(self, computation: metric_types.MetricComputation) -> None:
        matrices = computation.combiner._binary_confusion_matrices  # noqa: SLF001
        super().__init__(computation)
        self._thresholds = list(matrices._thresholds)  # noqa: SLF001
        self._fractional = matrices._enable_fractional_labels  # noqa: SLF001

    def add(self, rows: Rows) -> Array:
        labels, predictions, weights = rows.flat(self._key)
        if self._fractional:
            _check_probabilities(labels, self._key)
        sums = []
        for threshold in self._thresholds:
            truth = labels if self._fractional else (labels > threshold).astype(np.float64)
            positive = predictions > threshold
            true_weights, false_weights = weights * truth, weights * (1 - truth)
            sums.append(
                [
                    true_weights[positive].sum(),
                    false_weights[~positive].sum(),
                    false_weights[positive].sum(),
                    true_weights[~positive].sum(),
                ]
            )
        return np.array(sums)

    def output(self, sums: Array) -> MetricsDict:
        return {
            self._key: {
                threshold: _MatrixEntry(aggregates.Matrix(tp=tp, tn=tn, fp=fp, fn=fn), [], [], [], [])
                for threshold, (tp, tn, fp, fn) in zip(self._thresholds, sums.tolist(), strict=True)
            }
        }


class _RegressionError(Sums):
    def __init__(self, computation: metric_types.MetricComputation, power: int) -> None:
        super().__init__(computation)
        self._power = power

    def add(self, rows: Rows) -> Array:
        labels, predictions, weights = rows.flat(self._key)
        errors = np.abs(labels - predictions) ** self._power
        valid = ~np.isnan(errors)
        return np.array([errors[valid] @ weights[valid], weights[valid].sum()])

    def output(self, sums: Array) -> MetricsDict:
        return {self._key: float(sums[0] / sums[1]) if sums[1] else float("nan")}


class _SquaredPearson(Sums):
    """Sums are the weight, and the weighted sums of x, y, xx, yy and xy."""

    def add(self, rows: Rows) -> Array:
        x, y, weights = rows.flat(self._key)
        return np.array([np.ones_like(x), x, y, x * x, y * y, x * y]) @ weights

    def output(self, sums: Array) -> MetricsDict:
        weight, x, y, xx, yy, xy = sums
        if not weight:
            return {self._key: float("nan")}
        spread = (xx - x * x / weight) * (yy - y * y / weight)
        # There is no correlation if either has no spread.
        return {self._key: float((xy - x * y / weight) ** 2 / spread) if spread > 0 else float("nan")}


class _KerasMetrics(Sums):
    """Sums are the metrics' variables; TFMA adds them up, too."""

    def __init__(self, computation: metric_types.MetricComputation) -> None:
        super().__init__(computation)
        self._combiner = computation.combiner
        self._combiner.setup()
        # The Keras metrics that the combiner has made; there is no other access to them.
        self._metrics = self._combiner._metrics[""]  # noqa: SLF001

    def add(self, rows: Rows) -> Array:
        weights = []
        for metric in self._metrics:
            metric.reset_state()
            metric.update_state(
                _column(rows.labels),
                _column(rows.predictions[self._key.model_name]),
                sample_weight=rows.example_weights(self._key)[:, np.newaxis],
            )
            weights.append([np.asarray(w, np.float64) for w in metric.get_weights()])
        result: Array = np.empty(len(weights), dtype=object)
        result[:] = weights
        return result

    def merge(self, first: Array, second: Array) -> Array:
        merged: Array = np.empty(len(first), dtype=object)
        merged[:] = [
            [a + b for a, b in zip(mine, theirs, strict=True)]
            for mine, theirs in zip(first, second, strict=True)
        ]
        return merged

    def output(self, sums: Array) -> MetricsDict:
        accumulator = self._combiner.create_accumulator()
        for index, weights in enumerate(sums):
            accumulator.add_weights(0, index, [w.astype(np.float32) for w in weights])
        metrics = self._combiner.extract_output(accumulator)
        means = ((m.name, w) for m, w in zip(self._metrics, sums, strict=True) if isinstance(m, _KerasMean))
        weightless = {name for name, (*_, weight) in means if not weight}  # Keras says 0
        return {key: math.nan if key.name in weightless else value for key, value in metrics.items()}


class _ModelMetrics(Sums):
    """Sums are the variables of the model's own metrics."""

    def __init__(self, computation: metric_types.MetricComputation) -> None:
        self._combiner: model_metrics.ModelMetricsCombiner = computation.combiner

    def add(self, rows: Rows) -> model_metrics.Sums:
        return self._combiner.sums(np.asarray(rows.serialized))

    def merge(self, first: model_metrics.Sums, second: model_metrics.Sums) -> model_metrics.Sums:
        return model_metrics.add_sums(first, second)

    def output(self, sums: model_metrics.Sums) -> MetricsDict:
        return self._combiner.metrics(sums)


class _SklearnStatistic(Sums):
    def __init__(self, computation: metric_types.MetricComputation) -> None:
        super().__init__(computation)
        self._statistic = computation.combiner.statistic

    def add(self, rows: Rows) -> Any:
        predictions = rows.predictions[self._key.model_name]
        return measure(self._statistic, rows.labels, predictions, rows.example_weights(self._key))

    def merge(self, first: Any, second: Any) -> Any:
        return self._statistic.merge(first, second)

    def output(self, sums: Any) -> MetricsDict:
        return {self._key: sums}


def make_sums(computation: metric_types.MetricComputation) -> Sums | None:
    """Returns the sums that replace a computation's combiner, None if there are none."""
    combiner = computation.combiner
    plain = all(
        not getattr(combiner, name, None) for name in ("_aggregation_type", "_class_weights")
    ) and all(not key.sub_key and not key.output_name for key in computation.keys)
    standard = all(
        type(preprocessor) is metric_types.StandardMetricInputsPreprocessor
        for preprocessor in computation.preprocessors
    )
    if not plain or not standard:
        return None
    kind = type(combiner)
    if kind is _KerasCombiner:
        # A model with several outputs has a metric for each: left to TFMA's own path.
        is_single = combiner._output_names == [""]  # noqa: SLF001
        return _KerasMetrics(computation) if is_single else None
    if kind is _MatrixCombiner:
        # With an example id, the matrices are computed over groups of examples.
        is_plain = not combiner._example_id_key  # noqa: SLF001
        return _ConfusionMatrices(computation) if is_plain else None
    make = _SUMS.get(kind)
    return None if make is None else make(computation)


_SUMS: dict[type, Callable[[metric_types.MetricComputation], Sums]] = {
    _HistogramCombiner: _Histogram,
    _TotalsCombiner: _Totals,
    _CountCombiner: _ExampleCount,
    _SquaredErrorCombiner: functools.partial(_RegressionError, power=2),
    _AbsoluteErrorCombiner: functools.partial(_RegressionError, power=1),
    _PearsonCombiner: _SquaredPearson,
    model_metrics.ModelMetricsCombiner: _ModelMetrics,
    StatisticCombiner: _SklearnStatistic,
}


def all_sums(computations: Sequence[metric_types.MetricComputation]) -> list[Sums] | None:
    """Returns the sums for all computations, None if one of them has none."""
    sums = [make_sums(computation) for computation in computations]
    return None if any(s is None for s in sums) else [s for s in sums if s is not None]


def _concatenate(parts: Sequence[Array | None]) -> Array | None:
    return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])


def _column(values: Array) -> Array:
    return values[:, np.newaxis] if values.ndim == 1 else values


def _check_probabilities(labels: Array, key: metric_types.MetricKey) -> None:
    wrong = labels[~((labels >= 0) & (labels <= 1))]
    if wrong.size:
        raise ValueError(
            f"Metrics on a confusion matrix need labels between 0 and 1. Received: {wrong[0]} "
            f"(for {key.name})"
        )
