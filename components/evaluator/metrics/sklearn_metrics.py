"""Metrics with scikit-learn's definitions, from sums over arrays.

TFMA's metrics of several classes compare each probability with a threshold. These take the most probable
class, as a served model does. A name may contain an argument: `recall@late`, `top_k_accuracy@3`.

A share without a denominator, such as the recall of a class without examples, is NaN. In an average over
classes it counts as 0, as in scikit-learn.
"""

import abc
import copy
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from tensorflow_model_analysis.metrics import metric_types, metric_util
from tensorflow_model_analysis.proto import config_pb2

from components.errors import SettingError
from components.evaluator.gate.check import OF_CLASS
from components.nearest import nearest_first
from components.tfx.decision_file import DEFAULT_THRESHOLD

Array: TypeAlias = npt.NDArray[Any]
Parts: TypeAlias = tuple[Any, ...]

_BATCH_SIZE = 1000
_CLASS_BITS = 24  # of a code for two classes, or for a class and a probability
_NO_CLASS = (1 << _CLASS_BITS) - 1  # the prediction if a probability is NaN
_DROPPED_BITS = 9  # of a float32; the numbers that remain are at most 0.01 % apart


def group(ids: Array, values: Array) -> tuple[Array, Array]:
    """Returns the distinct ids, ascending, with the sums of their rows of values."""
    distinct, index = np.unique(ids, return_inverse=True)
    sums = np.stack([np.bincount(index, column, minlength=len(distinct)) for column in values.T], axis=1)
    return distinct, sums


class Statistic(abc.ABC):
    """Sums over examples, from which metrics follow. Most are ids with a row of values each."""

    of_numbers = False  # True if labels and predictions are compared as numbers

    @abc.abstractmethod
    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        """Returns the sums over some examples.

        Labels and weights are `[n]`, predictions `[n]` or `[n, classes]`.
        """

    def merge(self, first: Parts, second: Parts) -> Parts:
        return group(np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))


@dataclass(frozen=True)
class _Confusion(Statistic):
    """The weight of each pair of label and predicted class."""

    threshold: float  # Probability above which the second of two classes is predicted

    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        chosen = predictions > self.threshold if predictions.ndim == 1 else predictions.argmax(axis=1)
        is_known = np.isfinite(_by_class(predictions)).all(axis=1)
        codes = labels.astype(np.int64) << _CLASS_BITS | np.where(is_known, chosen, _NO_CLASS)
        return group(codes, weights[:, np.newaxis])


@dataclass(frozen=True)
class _Ranks(Statistic):
    """The weight of each rank of the label. Of equally probable classes, the last is the first."""

    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        scores = _by_class(predictions)
        ids = labels.astype(np.int64)[:, np.newaxis]
        score = np.take_along_axis(scores, np.minimum(ids, scores.shape[1] - 1), axis=1)
        is_later = np.arange(scores.shape[1]) > ids
        ranks = ((scores > score) | (scores == score) & is_later).sum(axis=1)
        is_known = (ids[:, 0] < scores.shape[1]) & np.isfinite(scores).all(axis=1)
        return group(np.where(is_known, ranks, scores.shape[1]), weights[:, np.newaxis])


@dataclass(frozen=True)
class _Scores(Statistic):
    """The weight of the class, and of all examples, by class and probability."""

    class_id: int | None  # The only class that is needed; None for all

    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        scores, classes = _by_class(predictions), np.arange(max(2, predictions.shape[-1]))
        if self.class_id is not None:
            scores, classes = scores[:, [self.class_id]], classes[[self.class_id]]
        wrong = scores[~((scores >= 0) & (scores <= 1))]
        if wrong.size:
            raise ValueError(
                f"AUC and average precision need probabilities between 0 and 1. Received: {wrong[0]}"
            )
        is_label = labels[:, np.newaxis] == classes
        # As exact near 1 as near 0, since most probabilities of a rare or frequent class are there.
        distance = _rounded_ids(np.minimum(scores, 1 - scores))
        codes = classes << _CLASS_BITS | np.where(scores > 0.5, _NO_CLASS - distance, distance)
        of_all = np.broadcast_to(weights[:, np.newaxis], scores.shape)
        return group(codes.ravel(), np.stack([(of_all * is_label).ravel(), of_all.ravel()], axis=1))


@dataclass(frozen=True)
class _MeanLoss(Statistic):
    """The weighted sum of the losses, and the weight."""

    loss: str
    argument: str
    of_numbers = True

    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        return _LOSSES[self.loss](labels, predictions, self.argument) @ weights, weights.sum()

    def merge(self, first: Parts, second: Parts) -> Parts:
        return first[0] + second[0], first[1] + second[1]


@dataclass(frozen=True)
class _SquaredErrors(Statistic):
    """The weight; the labels' mean, and their squares around it; the squared errors."""

    of_numbers = True

    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        weight = weights.sum()
        mean = labels @ weights / weight if weight else 0.0
        return weight, mean, (labels - mean) ** 2 @ weights, (labels - predictions) ** 2 @ weights

    def merge(self, first: Parts, second: Parts) -> Parts:
        weight, distance = first[0] + second[0], second[1] - first[1]
        share = second[0] / weight if weight else 0.0
        between = distance**2 * first[0] * share
        return weight, first[1] + distance * share, first[2] + second[2] + between, first[3] + second[3]


@dataclass(frozen=True)
class _AbsoluteErrors(Statistic):
    """The weight, and the weighted sum, of the absolute errors by size."""

    of_numbers = True

    def measure(self, labels: Array, predictions: Array, weights: Array) -> Parts:
        errors = np.abs(labels - predictions)
        return group(_rounded_ids(errors), np.stack([weights, weights * errors], axis=1))


class _Classes:
    """The weights of each class that is a label or a prediction, and the shares that follow: `[classes]`."""

    def __init__(self, confusion: Parts) -> None:
        codes, weights = confusion[0], confusion[1][:, 0]
        labels, chosen = codes >> _CLASS_BITS, codes & _NO_CLASS
        ids = np.unique(np.concatenate([labels, chosen[chosen != _NO_CLASS]]))

        def total(classes: Array, among: Array) -> Array:
            places = np.searchsorted(ids, classes[among])
            return np.bincount(places, weights[among], minlength=len(ids))

        self._ids = ids
        self._rows = total(labels, labels == labels)
        self._predicted = total(chosen, chosen != _NO_CLASS)
        self._right = total(labels, labels == chosen)
        self._weight = weights.sum()
        self.precision = _share(self._right, self._predicted)
        self.recall = _share(self._right, self._rows)
        self.f1 = _share(2 * self._right, self._rows + self._predicted)

    def pick(self, values: Array, class_id: int | None) -> float:
        """Returns the value of one class; NaN if no example or prediction is of this class."""
        return next(iter(values[self._ids == class_id]), math.nan)

    def weighted(self, values: Array) -> float:
        return _share(np.nan_to_num(values) @ self._rows, self._weight)

    def balanced_accuracy(self) -> float:
        """Returns the mean recall of the classes that have examples."""
        return _mean(self.recall[self._rows > 0])

    def matthews_correlation(self) -> float:
        """Returns the correlation of labels and predictions; 0 if one of them is always the same class."""
        squares = [self._weight**2 - weights @ weights for weights in (self._rows, self._predicted)]
        product = self._right.sum() * self._weight - self._rows @ self._predicted
        return product / math.sqrt(math.prod(squares)) if min(squares) > 0 else 0.0

    def cohen_kappa(self) -> float:
        by_chance = self._rows @ self._predicted / self._weight
        return _share(self._right.sum() - by_chance, self._weight - by_chance)


def _area_under_roc(positive: Array, negative: Array) -> float:
    below = np.cumsum(negative) - negative / 2  # a negative of the same probability counts as one half
    return _share(positive @ below, positive.sum() * negative.sum())


def _average_precision(positive: Array, negative: Array) -> float:
    precision = _share(np.cumsum(positive[::-1]), np.cumsum((positive + negative)[::-1]))
    return _share(np.nan_to_num(precision) @ positive[::-1], positive.sum())


def _areas(scores: Parts, area: Callable[[Array, Array], float]) -> Array:
    """Returns the area under a curve and the weight of each class: `[classes, 2]`.

    `area`: function of the weights of positives and negatives, in the order of their probabilities.
    """
    codes, weights = scores
    starts: Array = np.flatnonzero(np.diff(codes >> _CLASS_BITS)) + 1
    by_class = [part.T for part in np.split(weights, starts)]
    return np.array([(area(positive, total - positive), positive.sum()) for positive, total in by_class])


def _mean_area(scores: Parts, is_weighted: bool) -> float:
    """Returns the mean AUC of the classes that have one, those with and without examples."""
    areas = _areas(scores, _area_under_roc)
    values, weights = areas[~np.isnan(areas[:, 0])].T
    return _share(values @ weights, weights.sum()) if is_weighted else _mean(values)


def _median(errors: Parts) -> float:
    """Returns the median error; the mean of two if as much weight is below it as above."""
    weights, sums = errors[1][errors[1][:, 0] > 0].T
    until = np.cumsum(weights) / weights.sum()
    places = [np.searchsorted(until, half) for half in (0.5 - 1e-12, 0.5 + 1e-12)] if len(until) else []
    return _mean(np.array([sums[place] / weights[place] for place in places]))


def _r_squared(sums: Parts) -> float:
    weight, _, spread, errors = sums
    if weight and not spread:
        return 0.0 if errors else 1.0  # as in scikit-learn
    return 1 - _share(errors, spread)


def _squared_log_error(labels: Array, predictions: Array, _: str) -> Array:
    """Returns NaN where a number is -1 or less."""
    smallest = np.minimum(labels, predictions)
    logs = [np.log1p(np.where(smallest > -1, values, math.nan)) for values in (labels, predictions)]
    return (logs[0] - logs[1]) ** 2


def _pinball_loss(labels: Array, predictions: Array, quantile: str) -> Array:
    errors, share = labels - predictions, float(quantile)
    return np.maximum(share * errors, (share - 1) * errors)


def _ends(predictions: Array, interval: str) -> tuple[Array, Array]:
    """Returns the lower and the upper ends of prediction intervals; NaN for a model without intervals."""
    if not interval:
        nothing = np.full(len(predictions), np.nan)
        return nothing, nothing
    tables = json.loads(interval)
    ranges = np.searchsorted(tables["edges"], predictions, side="right")
    return predictions - np.take(tables["below"], ranges), predictions + np.take(tables["above"], ranges)


def _is_covered(labels: Array, lower: Array, upper: Array) -> Array:
    return np.where(np.isnan(lower), np.nan, (lower <= labels) & (labels <= upper))


_LOSSES: dict[str, Callable[[Array, Array, str], Array]] = {
    "squared": lambda labels, predictions, _: (labels - predictions) ** 2,
    "squared_log": _squared_log_error,
    "relative": lambda labels, predictions, _: (
        np.abs(labels - predictions) / np.maximum(np.abs(labels), np.finfo(np.float64).eps)
    ),
    "pinball": _pinball_loss,
    "covered": lambda labels, predictions, interval: _is_covered(labels, *_ends(predictions, interval)),
    "width": lambda _, predictions, interval: np.subtract(*reversed(_ends(predictions, interval))),
}


@dataclass(frozen=True)
class _Settings:
    argument: str  # The part of the name after "@"; of intervals, the content of the model's file
    class_id: int | None  # Class of a metric of one class
    threshold: float


_Metric: TypeAlias = tuple[Callable[[_Settings], Statistic], Callable[[Any, _Settings], float]]
"""The statistic of a metric, and its value."""


def _of_classes(value: Callable[[_Classes, _Settings], float]) -> _Metric:
    def value_of(confusion: Parts, settings: _Settings) -> float:
        return value(_Classes(confusion), settings) if confusion[1].any() else math.nan

    return lambda settings: _Confusion(settings.threshold), value_of


def _of_loss(loss: str, value: Callable[[float], float] = float) -> _Metric:
    return lambda settings: _MeanLoss(loss, settings.argument), lambda sums, _: value(_share(*sums))


METRICS: dict[str, _Metric] = {
    "precision": _of_classes(lambda of, settings: of.pick(of.precision, settings.class_id)),
    "recall": _of_classes(lambda of, settings: of.pick(of.recall, settings.class_id)),
    "f1_score": _of_classes(lambda of, settings: of.pick(of.f1, settings.class_id)),
    "specificity": _of_classes(lambda of, _: of.pick(of.recall, 0)),
    "precision_macro": _of_classes(lambda of, _: _mean(np.nan_to_num(of.precision))),
    "recall_macro": _of_classes(lambda of, _: _mean(np.nan_to_num(of.recall))),
    "f1_macro": _of_classes(lambda of, _: _mean(np.nan_to_num(of.f1))),
    "precision_weighted": _of_classes(lambda of, _: of.weighted(of.precision)),
    "recall_weighted": _of_classes(lambda of, _: of.weighted(of.recall)),
    "f1_weighted": _of_classes(lambda of, _: of.weighted(of.f1)),
    "balanced_accuracy": _of_classes(lambda of, _: of.balanced_accuracy()),
    "matthews_correlation": _of_classes(lambda of, _: of.matthews_correlation()),
    "cohen_kappa": _of_classes(lambda of, _: of.cohen_kappa()),
    "top_k_accuracy": (
        lambda _: _Ranks(),
        lambda ranks, settings: _share(ranks[1][ranks[0] < int(settings.argument)].sum(), ranks[1].sum()),
    ),
    "auc": (
        lambda settings: _Scores(settings.class_id),
        lambda scores, _: float(_areas(scores, _area_under_roc)[0, 0]),
    ),
    "auc_macro": (lambda _: _Scores(None), lambda scores, _: _mean_area(scores, is_weighted=False)),
    "auc_weighted": (lambda _: _Scores(None), lambda scores, _: _mean_area(scores, is_weighted=True)),
    "average_precision": (
        lambda _: _Scores(1),
        lambda scores, _: float(_areas(scores, _average_precision)[0, 0]),
    ),
    "brier_score": _of_loss("squared"),
    "mean_absolute_percentage_error": _of_loss("relative"),
    "root_mean_squared_log_error": _of_loss("squared_log", math.sqrt),
    "quantile_loss": _of_loss("pinball"),
    "median_absolute_error": (lambda _: _AbsoluteErrors(), lambda errors, _: _median(errors)),
    "interval_coverage": _of_loss("covered"),
    "interval_width": _of_loss("width"),
    "r2": (lambda _: _SquaredErrors(), lambda sums, _: _r_squared(sums)),
}


class SklearnMetric(metric_types.Metric):
    """A metric of `METRICS`.

    `class_id`: class of a metric of one class, see `resolve_classes`.
    `threshold`: probability above which a binary model says yes.
    `interval`: content of the model's `INTERVAL_FILE`.
    """

    def __init__(
        self,
        name: str,
        class_id: int | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        interval: str = "",
    ) -> None:
        if name.partition("@")[0] not in METRICS:
            near = ", ".join(nearest_first(name, METRICS))
            raise SettingError(f"SklearnMetric: there is no metric {name!r}. Its metrics: {near}.")
        super().__init__(
            metric_util.merge_per_key_computations(_computations),
            name=name,
            class_id=class_id,
            threshold=threshold,
            interval=interval,
        )


def _computations(
    name: str,
    class_id: int | None,
    threshold: float,
    interval: str,
    eval_config: config_pb2.EvalConfig | None,
    model_name: str,
    output_name: str,
    example_weighted: bool,
) -> list[Any]:
    base, _, argument = name.partition("@")
    settings = _Settings(interval or argument, class_id, threshold)
    make_statistic, value = METRICS[base]
    statistic = make_statistic(settings)
    rest = {"model_name": model_name, "output_name": output_name, "example_weighted": example_weighted}
    key = metric_types.MetricKey(name, **rest)
    sums_key = metric_types.MetricKey(repr(statistic), **rest)  # private, and equal for the same statistic
    return [
        metric_types.MetricComputation([sums_key], None, StatisticCombiner(statistic, sums_key, eval_config)),
        metric_types.DerivedMetricComputation(
            [key], lambda metrics: {key: value(metrics[sums_key], settings)}
        ),
    ]


class StatisticCombiner(beam.CombineFn):
    """Computes a statistic example by example."""

    def __init__(
        self,
        statistic: Statistic,
        key: metric_types.MetricKey,
        eval_config: config_pb2.EvalConfig | None = None,
    ) -> None:
        self.statistic = statistic
        self._key = key
        self._eval_config = eval_config

    def create_accumulator(self) -> list[Any]:
        """Returns the sums, None over no examples, followed by the examples that are not part of them yet."""
        return [None]

    def add_input(self, accumulator: list[Any], inputs: Any) -> list[Any]:
        key = self._key
        accumulator += metric_util.to_label_prediction_example_weight(
            inputs,
            eval_config=self._eval_config,
            model_name=key.model_name,
            output_name=key.output_name,
            example_weighted=key.example_weighted,
            flatten=False,
        )
        return self.compact(accumulator) if len(accumulator) > _BATCH_SIZE else accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        sums = None
        for accumulator in accumulators:
            sums = self._add(sums, self.compact(accumulator)[0])
        return [sums]

    def compact(self, accumulator: list[Any]) -> list[Any]:
        """Makes the waiting examples part of the sums."""
        sums, *waiting = accumulator
        if not waiting:
            return accumulator
        labels, predictions, weights = (np.stack(values) for values in zip(*waiting, strict=True))
        return [self._add(sums, measure(self.statistic, labels, predictions, weights.ravel()))]

    def extract_output(self, accumulator: list[Any]) -> dict[metric_types.MetricKey, Parts]:
        (sums,) = self.compact(accumulator)
        return {} if sums is None else {self._key: sums}

    def _add(self, first: Parts | None, second: Parts | None) -> Parts | None:
        if first is None or second is None:
            return first or second
        return self.statistic.merge(first, second)


def measure(statistic: Statistic, labels: Array, predictions: Array, weights: Array) -> Parts:
    """Returns a statistic of examples; labels of classes are ids, or `[n, classes]` of 0 and 1."""
    if predictions.ndim == 2 and predictions.shape[1] == 1:
        predictions = predictions[:, 0]
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if statistic.of_numbers and labels.ndim == 2:  # several numbers for each example
        weights = np.repeat(weights, labels.shape[1])
        labels, predictions = labels.ravel(), predictions.ravel()
    elif statistic.of_numbers and predictions.ndim == 2:
        predictions = predictions[:, 1]  # of two classes
    elif labels.ndim == 2:
        labels = labels.argmax(axis=1)
    return statistic.measure(labels.astype(np.float64), predictions.astype(np.float64), weights)


def resolve_classes(eval_config: config_pb2.EvalConfig, classes: Sequence[str]) -> config_pb2.EvalConfig:
    """Returns the configuration with the id of each class that a metric names.

    `classes`: names of the model's classes; empty if it has none, so that a configuration names ids.
    """
    config = copy.deepcopy(eval_config)
    for spec in config.metrics_specs:
        for metric in spec.metrics:
            settings = json.loads(metric.config or "{}")
            base, _, name = settings.get("name", "").partition("@")
            if metric.class_name != SklearnMetric.__name__ or base not in OF_CLASS:
                continue
            if not classes and not name.isdecimal():
                raise SettingError(
                    f"{base} of {name!r}: the model does not name its classes. Give the id of the class, "
                    "which is 0 or more."
                )
            if classes and name not in classes:
                raise SettingError(
                    f"{base} of {name!r}: the model has no such class. Its classes: "
                    f"{', '.join(nearest_first(name, classes))}."
                )
            class_id = list(classes).index(name) if classes else int(name)
            metric.config = json.dumps({**settings, "class_id": class_id})
    return config


def _by_class(predictions: Array) -> Array:
    """Returns the probabilities of all classes: `[n, classes]`."""
    return np.stack([1 - predictions, predictions], axis=1) if predictions.ndim == 1 else predictions


def _rounded_ids(values: Array) -> Array:
    """Returns integers in the order of numbers that are not negative; nearly equal numbers share one."""
    return (values.astype(np.float32).view(np.int32) >> _DROPPED_BITS).astype(np.int64)


def _share(part: Any, whole: Any) -> Any:
    """Returns the quotient; NaN if the whole is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.equal(whole, 0), math.nan, np.divide(part, whole))[()]


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else math.nan
