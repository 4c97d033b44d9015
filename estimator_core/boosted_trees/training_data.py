"""The training data, read once into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator_core.logs import logger

_WIDE_COLUMNS = 256
_SPARSE_SHARE = 0.25
_ROUNDING = 1e-6  # of sums of Hessians, relative


class TrainingData(NamedTuple):
    """All rows for growing trees."""

    # float32 `[rows, columns]`; a `scipy.sparse.csr_matrix` if it is wide and mostly zeros.
    matrix: Any
    weights: Any  # float32 `[rows]`, or None
    loss_data: Any  # Values of `HeadLoss.batch` for all rows

    @property
    def num_rows(self) -> int:
        return int(self.matrix.shape[0])


def read_training_data(
    next_batch: Callable[[], Any], num_batches: int
) -> tuple[TrainingData | None, TrainingData | None]:
    """Reads batches, and returns the rows to learn from and the held-out rows, each None if empty.

    `next_batch`: function that returns the next batch, and raises `OutOfRangeError` at the end. A batch is
    (matrix, weights or None, loss data, mask of the held-out rows or None).
    `num_batches`: number of batches in the data set; the input may end before.
    """
    learned: list[TrainingData] = []
    held_out: list[TrainingData] = []
    for _ in range(num_batches):
        try:
            matrix, weights, loss_data, mask = next_batch()
        except tf.errors.OutOfRangeError:
            break
        batch = TrainingData(_compressed(matrix), weights, loss_data)
        learned.append(batch if mask is None else _selected(batch, ~mask))
        if mask is not None:
            held_out.append(_selected(batch, mask))
    data, validation = _concatenated(learned), _concatenated(held_out)
    if data is not None:
        logger.info(
            "Read the training data: %d rows of %d columns in %d batches, n_batches_per_layer=%d.",
            *data.matrix.shape,
            len(learned),
            num_batches,
        )
    return data, validation


def _selected(data: TrainingData, mask: Any) -> TrainingData:
    others = tf.nest.map_structure(
        lambda value: None if value is None else value[mask], (data.weights, data.loss_data)
    )
    return TrainingData(data.matrix[mask], *others)


def _concatenated(parts: list[TrainingData]) -> TrainingData | None:
    """Returns the rows of all parts, or None if there are none."""
    if not sum(part.num_rows for part in parts):
        return None
    others = [(part.weights, part.loss_data) for part in parts]
    weights, loss_data = tf.nest.map_structure(
        lambda *values: None if values[0] is None else np.concatenate(values), *others
    )
    return TrainingData(_stacked([part.matrix for part in parts]), weights, loss_data)


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


def without_rare_values(matrix: Any, min_rows: float) -> Any:
    """Returns a sparse matrix without the columns that no split can use; dense ones as they are.

    A column with values other than 0 in fewer rows than a leaf needs, such as the indicator of a rare word,
    can't divide the rows. Its values become 0, so that the library leaves it out.
    """
    if isinstance(matrix, np.ndarray):
        return matrix
    is_kept = (matrix.getnnz(axis=0) >= min_rows * (1 - _ROUNDING))[matrix.indices]
    begins = np.concatenate([[0], np.cumsum(is_kept)])[matrix.indptr]
    kept = (matrix.data[is_kept], matrix.indices[is_kept], begins)
    return type(matrix)(kept, shape=matrix.shape)
