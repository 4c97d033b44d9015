"""The training data, read once into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator_core.logs import logger

_WIDE_COLUMNS = 256
_SPARSE_SHARE = 0.25


class TrainingData(NamedTuple):
    """All rows for growing trees.

    Attributes:
        matrix: float32 `[rows, columns]`; a `scipy.sparse.csr_matrix` if it is wide and mostly zeros.
        weights: float32 `[rows]`, or None.
        loss_data: Values of `HeadLoss.batch` for all rows.
    """

    matrix: Any
    weights: Any
    loss_data: Any

    @property
    def num_rows(self) -> int:
        """Number of examples."""
        return int(self.matrix.shape[0])


def read_training_data(next_batch: Callable[[], Any], num_batches: int) -> TrainingData | None:
    """Reads batches of (matrix, weights or None, loss data), and concatenates them; None without any row.

    Args:
        next_batch: Function that returns the values of the next batch, and raises `OutOfRangeError` at
            the end.
        num_batches: Number of batches in the data set; the input may end before.
    """
    matrices, others = [], []
    for matrix, weights, loss_data in _batches(next_batch, num_batches):
        matrices.append(_compressed(matrix))
        others.append((weights, loss_data))
    if not sum(matrix.shape[0] for matrix in matrices):
        return None
    weights, loss_data = tf.nest.map_structure(lambda *parts: _rows(parts), *others)
    data = TrainingData(_stacked(matrices), weights, loss_data)
    logger.info(
        "Read the training data: %d rows of %d columns in %d batches, n_batches_per_layer=%d.",
        *data.matrix.shape,
        len(matrices),
        num_batches,
    )
    return data


def _batches(next_batch: Callable[[], Any], num_batches: int) -> Iterator[Any]:
    for _ in range(num_batches):
        try:
            yield next_batch()
        except tf.errors.OutOfRangeError:
            return


def _rows(parts: Any) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def _compressed(matrix: Any) -> Any:
    """Returns a wide matrix that is mostly zeros as a sparse one; others as they are."""
    if matrix.shape[1] < _WIDE_COLUMNS or np.count_nonzero(matrix) > _SPARSE_SHARE * matrix.size:
        return matrix
    from scipy import sparse  # LightGBM installs it

    return sparse.csr_matrix(matrix)


def _stacked(matrices: list[Any]) -> Any:
    if all(isinstance(matrix, np.ndarray) for matrix in matrices):
        return np.ascontiguousarray(np.concatenate(matrices))
    from scipy import sparse

    return sparse.vstack(matrices, format="csr")
