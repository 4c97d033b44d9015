"""Prediction intervals of a regression: conformal, from the errors on held-out rows."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

import estimator_core
from pipelines.atomic_files import write_uri
from pipelines.tabular.held_out import HeldOut, with_predictions
from pipelines.tabular.plan import fewest_rows_of_interval

LOWER, UPPER = "lower", "upper"
_ROWS_OF_RANGE = 200
_MAX_RANGES = 10


@dataclass(frozen=True)
class Interval:
    """Distances of the ends of an interval from the prediction, by range of the prediction."""

    level: float  # Share of the rows whose labels are to be in their intervals
    edges: list[float]  # Predictions between two ranges, ascending
    below: list[float]  # Distance of the lower end from the prediction, in each range
    above: list[float]
    held_out_rows: int


def choose_interval(level: float, held_out: HeldOut) -> Interval:
    """Returns the split-conformal interval, with half of the misses on each side.

    Predictions are divided into ranges of equally many rows, each with separate distances: large numbers
    are often predicted less exactly than small ones.

    Source: Vovk, "Conditional validity of inductive conformal predictors", 2012.
    """
    predictions = held_out.predictions[:, 0]
    errors = np.asarray(held_out.labels, np.float64) - predictions
    least = max(_ROWS_OF_RANGE, fewest_rows_of_interval(level))
    num_ranges = max(1, min(_MAX_RANGES, len(errors) // least))
    shares = np.arange(1, num_ranges) / num_ranges
    # Rounded as the graph compares them. Of equal predictions, all are in the same range.
    edges = np.unique(np.quantile(predictions, shares).astype(np.float32)).astype(np.float64)
    ranges = np.searchsorted(edges, predictions.astype(np.float32), side="right")
    below, above = [], []
    for number in range(len(edges) + 1):
        mask = ranges == number
        if mask.sum() < fewest_rows_of_interval(level):  # many predictions are equal
            mask = np.ones_like(mask)
        below.append(_bound(-errors[mask], held_out.weights[mask], level))
        above.append(_bound(errors[mask], held_out.weights[mask], level))
    return Interval(level, edges.tolist(), below, above, len(errors))


def _bound(errors: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], level: float) -> float:
    """Returns the error that a further row exceeds with half the probability of a miss, at most."""
    order = np.argsort(errors)
    reached = np.cumsum(weights[order])
    wanted = (1 - (1 - level) / 2) * (reached[-1] + weights.mean())  # the further row has a mean weight
    index = int(np.searchsorted(reached, wanted * (1 - 1e-12)))
    return float(errors[order[min(index, len(errors) - 1)]])


def with_interval(regressor: Any, interval: Interval) -> Any:
    """Returns an Estimator whose predictions have a lower and an upper end."""
    edges, below, above = (
        np.array(values, np.float32) for values in (interval.edges, interval.below, interval.above)
    )

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> estimator_core.EstimatorSpec:
        spec = regressor.model_fn(features, labels, mode, config)
        if mode != estimator_core.ModeKeys.PREDICT:
            return spec
        (value,) = spec.predictions.values()
        ranges = tf.searchsorted(edges, tf.reshape(value, [-1]), side="right")
        low, high = (tf.reshape(tf.gather(table, ranges), tf.shape(value)) for table in (below, above))
        predictions = {**spec.predictions, LOWER: value - low, UPPER: value + high}
        return with_predictions(spec, predictions)

    return estimator_core.Estimator(model_fn, model_dir=regressor.model_dir, config=regressor.config)


def write_interval(file: str, interval: Interval) -> None:
    write_uri(file, json.dumps(asdict(interval)))


def read_interval(file: str) -> Interval:
    with tf.io.gfile.GFile(file) as stream:
        return Interval(**json.load(stream))
