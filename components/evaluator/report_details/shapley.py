"""Shapley values: how much each column of a row moves the prediction away from that for background rows.

The columns of a row replace those of a background row one after the other, in a random order and in the
reverse order, and each column gets the change of the prediction. Each order starts at the prediction for the
background row and ends at that for the row, so the values always add up. They are exact for one or two
columns, and for a sum of functions of single columns; otherwise they are unbiased estimates.

Source: Štrumbelj and Kononenko, "Explaining prediction models and individual predictions with feature
contributions" (2014); the reverse orders: Mitchell et al., arXiv:2104.12199.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_ROWS_IN_A_CALL = 4_096
_CELLS_AT_A_TIME = 4_000_000
_SEED = 20_261_130

Indices: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.float64]


def number_cells(columns: Sequence[Sequence[Hashable]]) -> Indices:
    """Returns for each cell the first row with the same cell in its column: `[rows, columns]`."""
    numbers = []
    for cells in columns:
        first: dict[Hashable, int] = {}
        numbers.append([first.setdefault(cell, row) for row, cell in enumerate(cells)])
    return np.array(numbers, np.int64).T


def shapley_values(
    predict: Callable[[Indices], npt.NDArray[Any]], cells: Indices, num_rows: int
) -> tuple[float, Values]:
    """Returns the mean prediction for the background, and the values of each row: `[num_rows, columns]`.

    `predict`: function from rows of numbered cells to their predictions.
    `cells`: cells of the rows to explain and then of the background, see `number_cells`.
    """
    rows, background = cells[:num_rows], cells[num_rows:]
    num_background, num_columns = background.shape
    # The orders depend on the background row alone, so that other rows do not change an explanation.
    orders = np.tile(np.arange(num_columns), (num_background, 1))
    ranks = np.random.default_rng(_SEED).permuted(orders, axis=1)
    values = np.zeros((num_rows, num_columns))
    pairs_at_a_time = max(1, _CELLS_AT_A_TIME // (2 * (num_columns + 1) * num_columns))
    for first in range(0, num_rows * num_background, pairs_at_a_time):
        pairs = np.arange(first, min(first + pairs_at_a_time, num_rows * num_background))
        row, other = np.divmod(pairs, num_background)
        rank = np.stack([ranks[other], num_columns - 1 - ranks[other]])
        shape = (2, len(pairs), num_columns + 1)  # the last is the number of columns from the row
        path = []
        for order, pair, number in _pieces(shape, max(1, _CELLS_AT_A_TIME // num_columns)):
            is_taken = rank[order, pair] < number[:, np.newaxis]
            mixed = np.where(is_taken, rows[row[pair]], background[other[pair]])
            path.append(_predict_once(predict, mixed))
        steps = np.diff(np.concatenate(path).reshape(shape), axis=2)
        steps = np.take_along_axis(steps, rank, axis=2).mean(axis=0)
        np.add.at(values, row, steps / num_background)
    return float(_predict_once(predict, background).mean()), values


def _pieces(shape: tuple[int, ...], size: int) -> Iterator[tuple[Indices, ...]]:
    """Yields all indices of a shape, in order, `size` at a time."""
    total = math.prod(shape)
    for first in range(0, total, size):
        yield np.unravel_index(np.arange(first, min(first + size, total)), shape)


def _predict_once(predict: Callable[[Indices], npt.NDArray[Any]], mixed: Indices) -> Values:
    """Returns the predictions for rows, many of which are equal."""
    distinct, index = np.unique(mixed, axis=0, return_inverse=True)
    parts = [
        predict(distinct[first : first + _ROWS_IN_A_CALL])
        for first in range(0, len(distinct), _ROWS_IN_A_CALL)
    ]
    return np.concatenate(parts).astype(np.float64)[index.reshape(-1)]


def log_odds(probabilities: npt.NDArray[Any], class_id: int) -> Values:
    """Returns the log-odds of a class from the probabilities of all classes, `[rows, classes]`."""
    exact = np.maximum(np.asarray(probabilities, np.float64), np.finfo(np.float32).tiny)
    # Not 1 - p, in which small probabilities would be lost.
    odds: Values = exact[:, class_id] / np.delete(exact, class_id, axis=1).sum(axis=1)
    return np.log(odds)
