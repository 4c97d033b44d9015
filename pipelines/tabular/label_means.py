"""What the label is on average where a category has a value.

Trees split numbers in two. Values in the order of their label's mean are split as well as any two groups
of them could be (for a squared error, and for two classes); in any other order it takes many splits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.tabular.plan import LabelPlan

MIN_ROWS = 20
"""Of a value; with fewer, a row would find too much of its own label in the mean."""

MAX_CONSTANTS = 4_000_000
"""Of all features together: each looks its means up in a constant of the graph."""


def has_label_means(label: LabelPlan, keys: tuple[str, ...], num_ids: int) -> bool:
    """Returns whether there are means: of numbers, or of two classes, and not of too many values.

    Args:
      label: The label.
      keys: As for `label_means`.
      num_ids: As for `label_means`.
    """
    has_mean = label.problem_type == "regression" or len(label.classes) == 2
    return has_mean and 0 < len(keys) * num_ids <= MAX_CONSTANTS


def label_means(
    batches: Any, label: LabelPlan, keys: tuple[str, ...], num_ids: int
) -> npt.NDArray[np.float32]:
    """Returns the mean of the label by id, shrunk towards the mean of all rows.

    Args:
      batches: Pairs of (features, label) whose features have ids, int64, shape [batch_size], and whose labels
        are numbers or class names, shape [batch_size]. Rows that are learned from.
      label: Says which; the second class counts as 1, the first one as 0.
      keys: Features whose ids are counted. They share none but the last one, of values that are not known.
      num_ids: One more than the last id.

    Returns:
      Float32, shape [num_ids]; NaN for the last id, and for those of fewer than `MIN_ROWS` rows.
    """
    sums, counts = np.zeros(num_ids), np.zeros(num_ids)
    total, num_rows = 0.0, 0
    for features, labels in batches:
        values = labels.numpy()
        if label.problem_type == "regression":
            values = values.astype(np.float64)
        else:
            values = (values == label.classes[1].encode()).astype(np.float64)
        total, num_rows = total + values.sum(), num_rows + len(values)
        for key in keys:
            ids = features[key].numpy()
            sums += np.bincount(ids, values, num_ids)
            counts += np.bincount(ids, minlength=num_ids)
    mean = total / max(num_rows, 1)
    shrunk = (sums + MIN_ROWS * mean) / (counts + MIN_ROWS)
    known = counts >= MIN_ROWS
    known[-1] = False
    return np.where(known, shrunk, np.nan).astype(np.float32)
