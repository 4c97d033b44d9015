"""Early stopping of boosted trees by rows of the training data that no tree is grown from."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from estimator_core.boosted_trees.training_data import TrainingData
from estimator_core.logs import logger

_ITERATIONS_AT_A_TIME = 10  # a prediction reads all values of the rows, however many trees it has


@dataclasses.dataclass(frozen=True)
class TreesEarlyStopping:
    """Ends the training of boosted trees when the loss on held-out rows stops falling.

    The loss of each iteration is computed in memory. At the end, the trees after the iteration with the
    lowest loss are removed, and the variable `boosted_trees/finished` is the number of iterations that are
    left. A training that `max_steps` ends earlier keeps all of its trees. Without held-out rows, all trees
    are grown, with a warning.

    Example:
        >>> early_stopping = TreesEarlyStopping("is_held_out", patience=20)
        >>> estimator = BoostedTreesRegressor(
        ...     columns, 1, n_trees=500, early_stopping=early_stopping
        ... )  # doctest: +SKIP

    Args:
        validation_column: Name of the feature that marks the held-out rows: numbers or bools of shape
            `[batch_size]`, 0 for the rows to learn from.
        patience: Iterations without a lower loss that end the training.
        report: Function of (number of iterations, loss after them), called for each iteration in order.
            Losses are computed many at a time, the last ones at the end of a training. A training that
            continues from a checkpoint begins with the first iteration again. None reports nothing.

    Raises:
        ValueError: `patience` is not a whole number above 0.
    """

    validation_column: str
    patience: int = 50
    report: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        """Checks `patience`."""
        is_whole = isinstance(self.patience, numbers.Integral) and self.patience > 0
        if not is_whole or isinstance(self.patience, bool):
            raise ValueError(
                "patience is a number of iterations, a whole number above 0. "
                f"Received: patience={self.patience!r}"
            )


class Validation:
    """The loss on held-out rows, iteration by iteration.

    Iterations are judged many at a time, when the training may end: alternating between growing and judging
    would cost more than either.

    `loss`: function from logits, float32 `[rows, logits_dimension]`, to the loss.
    """

    def __init__(
        self,
        data: TrainingData,
        loss: Callable[[Any], Any],
        patience: int,
        report: Callable[[int, float], None] | None = None,
    ):
        self._data = data
        self._report = report
        self._loss_of = loss
        self._patience = patience
        self._scores: Any = None
        self._num_threads = 0
        self._iterations = self._judged_from = 0
        self._best_loss = np.inf
        self.best = 0

    @property
    def iterations(self) -> int:
        """Number of iterations that are judged, with those of a warm start."""
        return self._iterations

    @property
    def last(self) -> int:
        """Number of iterations that ends the training unless one of them has a lower loss."""
        return self.best + self._patience

    def start(self, bias: Any, warm_started: int, num_threads: int) -> None:
        """Begins without a tree, with as many threads as the library grows trees with."""
        self._scores = np.tile(bias, (self._data.num_rows, 1))
        self._iterations, self.best, self._best_loss = 0, warm_started, np.inf
        self._judged_from = warm_started
        self._num_threads = num_threads

    def judge(self, booster: Any, indices: Iterable[int | None]) -> None:
        """Judges the next iterations.

        `indices`: index of each iteration in the booster, one after the other; None at the end for trees
        that add nothing.
        """
        grown = list(indices)
        for begin in range(0, len(grown), _ITERATIONS_AT_A_TIME):
            part = grown[begin : begin + _ITERATIONS_AT_A_TIME]
            learned = [index for index in part if index is not None]
            leaves: Any = self._leaves(booster, learned[0], len(learned)) if learned else None
            for position, index in enumerate(part):
                if index is not None:
                    self._add(booster, index, leaves[:, position])
                self._iterations += 1
                if self._iterations > self._judged_from:
                    self._compare(float(self._loss_of(self._scores.astype(np.float32))))

    def _leaves(self, booster: Any, first: int, count: int) -> Any:
        """Returns the leaf of each row in each tree, `[rows, iterations, logits_dimension]`."""
        leaves = booster.predict(
            self._data.matrix,
            pred_leaf=True,
            start_iteration=first,
            num_iteration=count,
            num_threads=self._num_threads,
        )
        return leaves.reshape(len(self._scores), count, -1).astype(np.int64)

    def _add(self, booster: Any, index: int, leaves: Any) -> None:
        """Adds the trees of an iteration to the scores, by their leaves `[rows, logits_dimension]`."""
        dimension = leaves.shape[1]
        for logit in range(dimension):
            of_tree = leaves[:, logit]
            tree = index * dimension + logit
            values = [booster.get_leaf_output(tree, leaf) for leaf in range(of_tree.max() + 1)]
            self._scores[:, logit] += np.array(values)[of_tree]

    def _compare(self, loss: float) -> None:
        if self._report:
            self._report(self._iterations, loss)
        is_first = self.best == self._judged_from
        if is_first or loss < self._best_loss or np.isnan(self._best_loss):
            self.best, self._best_loss = self._iterations, loss
        elif self._iterations == self.last:
            logger.info(
                "The loss on the held-out rows is lowest after %d iterations: %g.", self.best, self._best_loss
            )
