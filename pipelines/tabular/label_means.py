"""Mean of the label for each value of a category.

Trees split numbers in two. If the values are sorted by the mean of their label, one split can reach the best
division into two groups (for a squared error, and for two classes); in any other order it takes many splits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.tabular.inputs import HELD_OUT_KEY
from pipelines.tabular.plan import LabelPlan

MIN_ROWS = 20
"""Smallest number of rows of a value; with fewer, a row's own label has too much weight in the mean."""

MAX_CONSTANTS = 4_000_000
"""Largest number of ids of all features: each feature looks its means up in a constant of the graph."""


def has_label_means(label: LabelPlan, keys: tuple[str, ...], num_ids: int) -> bool:
    """Returns True if the label has means: it is a number or one of two classes, with not too many ids."""
    has_mean = label.problem_type == "regression" or len(label.classes) == 2
    return has_mean and 0 < len(keys) * num_ids <= MAX_CONSTANTS


def label_means(
    batches: Any, label: LabelPlan, keys: tuple[str, ...], num_ids: int
) -> npt.NDArray[np.float32]:
    """Returns the mean of the label by id, shrunk towards the mean of all rows.

    `batches`: pairs of (features, label). Features are ids, int64, shape [batch_size, ...]; labels are
    numbers or class names, shape [batch_size]. The rows that `HELD_OUT_KEY` marks, if there is one, do not
    count.
    `label`: plan of the label; its second class counts as 1, the first one as 0.
    `keys`: features whose ids are counted. They share only the last id, of unknown values.
    Returns float32, shape [num_ids]; NaN for the last id, and for those of fewer than `MIN_ROWS` rows.
    """
    sums, counts = np.zeros(num_ids), np.zeros(num_ids)
    total, num_rows = 0.0, 0
    for features, labels in batches:
        mask = ~features[HELD_OUT_KEY].numpy() if HELD_OUT_KEY in features else slice(None)
        values = labels.numpy()[mask]
        if label.problem_type == "regression":
            values = values.astype(np.float64)
        else:
            values = (values == label.classes[1].encode()).astype(np.float64)
        total, num_rows = total + values.sum(), num_rows + len(values)
        for key in keys:
            ids = features[key].numpy()[mask]
            weights = np.repeat(values, ids[0].size) if len(ids) else values
            ids = ids.ravel()
            sums += np.bincount(ids, weights, num_ids)
            counts += np.bincount(ids, minlength=num_ids)
    mean = total / max(num_rows, 1)
    shrunk = (sums + MIN_ROWS * mean) / (counts + MIN_ROWS)
    known = counts >= MIN_ROWS
    known[-1] = False
    return np.where(known, shrunk, np.nan).astype(np.float32)
