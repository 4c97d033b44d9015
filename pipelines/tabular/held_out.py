"""Labels and predictions of the rows that a training has held out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_OUTPUTS = ("probabilities", "predictions")  # of classifiers and of regressors


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, in the order of the files."""

    labels: npt.NDArray[Any]  # Class names as bytes, or numbers; [rows]
    # Probabilities of the classes, [rows, classes]; numbers in the label's units, [rows, 1]
    predictions: npt.NDArray[np.float64]


def predict_held_out(estimator: Any, input_fn: Any, checkpoint: str | None = None) -> HeldOut:
    """Predicts held-out rows.

    `input_fn`: function that returns their (features, labels) batches, in the same order at each call.
    `checkpoint`: checkpoint to predict with; None means the newest one.
    """
    labels = np.concatenate([labels.numpy().reshape(-1) for _, labels in input_fn()])
    batches = estimator.predict(input_fn, checkpoint_path=checkpoint, yield_single_examples=False)
    parts = [next(batch[name] for name in _OUTPUTS if name in batch) for batch in batches]
    if labels.dtype == object:
        labels = labels.astype(np.bytes_)
    return HeldOut(labels, np.concatenate(parts).astype(np.float64))
