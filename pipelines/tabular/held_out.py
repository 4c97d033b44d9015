"""Predictions: those of the rows that a training has held out, and those of a spec."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from estimator_core import EstimatorSpec
from estimator_core.export import PredictOutput
from pipelines.tabular.plan import WEIGHT_KEY

_OUTPUTS = ("probabilities", "predictions")  # of classifiers and of regressors


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, in the order of the files."""

    labels: npt.NDArray[Any]  # Class names as bytes, or numbers; [rows]
    # Probabilities of the classes, [rows, classes]; numbers in the label's units, [rows, 1]
    predictions: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]  # 1 where rows have none; [rows]


def with_predictions(spec: EstimatorSpec, predictions: dict[str, Any]) -> EstimatorSpec:
    """Returns a spec with other predictions, in its signatures as well."""
    outputs = {
        name: PredictOutput(predictions) if isinstance(output, PredictOutput) else output
        for name, output in (spec.export_outputs or {}).items()
    }
    return spec._replace(predictions=predictions, export_outputs=outputs or None)


def predict_held_out(estimator: Any, input_fn: Any) -> HeldOut:
    """Predicts held-out rows, except those of weight 0, with the newest checkpoint.

    `input_fn`: function that returns their (features, labels) batches, in the same order at each call.
    """
    labels: list[npt.NDArray[Any]] = []
    weights: list[npt.NDArray[Any]] = []
    for features, of_batch in input_fn():
        labels.append(of_batch.numpy().reshape(-1))
        weights.append(np.reshape(features.get(WEIGHT_KEY, np.ones(len(labels[-1]))), -1))
    batches = estimator.predict(input_fn, yield_single_examples=False)
    parts = [next(batch[name] for name in _OUTPUTS if name in batch) for batch in batches]
    predictions = np.concatenate(parts).astype(np.float64)
    names = np.concatenate(labels)
    if names.dtype == object:
        names = names.astype(np.bytes_)
    of_rows = np.concatenate(weights).astype(np.float64)
    counts = of_rows > 0
    return HeldOut(names[counts], predictions[counts], of_rows[counts])
