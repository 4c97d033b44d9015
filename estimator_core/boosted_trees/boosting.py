"""Boosting: grows a forest tree by tree, as training steps go by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from estimator_core.boosted_trees.forest import Forest, concatenated, constant_trees
from estimator_core.boosted_trees.library import lightgbm
from estimator_core.boosted_trees.model_text import forest_from_text, text_from_forest
from estimator_core.boosted_trees.objectives import Objective
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.boosted_trees.training_data import TrainingData
from estimator_core.logs import logger

_SMALL = 1e15  # its square is a float32
_TREES_AT_A_TIME = 10  # the leaves of all rows for so many are in memory at once


class BoostingState(NamedTuple):
    """A forest between two training steps.

    Attributes:
        forest: The trees. Those after the finished iterations have the layers that are grown so far.
        bias: float64 `[logits_dimension]`.
        finished: Iterations whose trees are finished.
        steps_in_tree: Steps since then.
        warm_started: Iterations that another model has given; `n_trees` come on top of them.
    """

    forest: Forest
    bias: Any
    finished: int
    steps_in_tree: int
    warm_started: int


class Boosting:
    """Grows the trees that training steps ask for.

    A tree is grown whole when its first layer is; until its last layer is due, it is seen cut to the layers
    that are. The library grows the same trees from the same scores: a training that goes on
    from a state grows those that it would have grown without a break.

    Args:
        settings: How trees are grown.
        objective: What they minimize.
        data: The training data.
        labels: float32 `[rows]` for an objective of the library's; None for one by gradients.
        gradients: Function from logits `[rows, logits_dimension]` to gradients and Hessians of the same
            shape, for an objective by gradients.
        state: Where it begins.
        num_threads: Of the library; None lets it choose.
    """

    def __init__(
        self,
        settings: BoostingSettings,
        objective: Objective,
        data: TrainingData,
        labels: Any,
        gradients: Callable[[Any], tuple[Any, Any]],
        state: BoostingState,
        num_threads: int | None = None,
    ):
        self._settings = settings
        self._objective = objective
        self._by_own_gradients = objective.parameters["objective"] == "none"
        self._data = data
        self._gradients = gradients
        self._labels = labels
        self._bias = state.bias
        self._dimension = len(state.bias)
        self._warm_started = state.warm_started
        self._num_threads = num_threads
        self._finished = state.finished
        self._steps_in_tree = state.steps_in_tree
        self._first = state.finished  # iterations before those of the booster
        self._parts = [state.forest.trees(0, state.finished * self._dimension)]
        self._in_parts = state.finished
        self._scores = self._starting_scores(self._parts[0])
        self._largest_score = np.abs(self._scores).max()
        self._booster = self._new_booster()
        self._grown = 0  # iterations since then
        self._split = 0  # those of them that the booster has: later ones found no split

    @property
    def steps_left(self) -> int:
        """Training steps until all trees are finished."""
        trees = self._warm_started + self._settings.n_trees - self._finished
        return max(0, trees * self._settings.steps_per_tree - self._steps_in_tree)

    @property
    def finished(self) -> int:
        """Iterations whose trees are finished."""
        return self._finished

    @property
    def steps_left_in_tree(self) -> int:
        """Training steps until the tree that is growing is finished, 1 or more."""
        return self._settings.steps_per_tree - self._steps_in_tree

    def may_have_nan_loss(self, steps: int) -> bool:
        """Returns whether the loss of the next steps has to be computed to know that it is a number.

        A loss of the library's is one while the scores are small. Any other loss comes with the gradients
        that the tree is grown by.

        Args:
            steps: How many, all of one tree.
        """
        if self._by_own_gradients:
            return steps < self.steps_left_in_tree  # the tree is not grown yet
        ends = self._booster.lower_bound(), self._booster.upper_bound()
        return not self._largest_score + np.abs(ends).max() < _SMALL  # it may be NaN

    def advance(self, steps: int) -> None:
        """Makes training steps: grows the trees that they finish."""
        self._steps_in_tree += steps
        while self._steps_in_tree >= self._settings.steps_per_tree:
            self._grow_to(self._finished + 1)
            self._finished += 1
            self._steps_in_tree -= self._settings.steps_per_tree

    def state(self) -> BoostingState:
        """Returns the forest as it is after the steps made so far."""
        layers = self._steps_in_tree // self._settings.n_batches_per_layer
        if layers:
            self._grow_to(self._finished + 1)
        self._take_finished()
        parts = [*self._parts]
        if layers:
            parts.append(self._trees(self._finished, self._finished + 1).cut_to(layers))
        return BoostingState(
            concatenated(parts), self._bias, self._finished, self._steps_in_tree, self._warm_started
        )

    def logits(self) -> Any:
        """Returns the training data's logits, float64 `[rows, logits_dimension]`, by finished trees.

        It is called before `state`, which grows the next tree.
        """
        if self._grown == 0:
            return self._scores
        found = []

        def keep(predictions: Any, _: Any) -> tuple[str, float, bool]:
            found.append(np.array(predictions))
            return "kept", 0.0, False

        self._booster.eval_train(keep)
        logits = self._objective.logits(found[0])
        return logits.reshape(self._data.num_rows, self._dimension, order="F")

    def _grow_to(self, iterations: int) -> None:
        while self._first + self._grown < iterations:
            if self._split == self._grown:
                self._grow()
            self._grown += 1

    def _grow(self) -> None:
        fobj = self._by_gradients if self._by_own_gradients else None
        if not self._booster.update(fobj=fobj):
            self._split += 1
            return
        logger.info(
            "No split lowers the loss any more after %d iterations: trees that follow are single leaves.",
            self._first + self._grown,
        )

    def _by_gradients(self, scores: Any, _: Any) -> tuple[Any, Any]:
        logits = np.asarray(scores).reshape(self._data.num_rows, self._dimension, order="F")
        gradients, hessians = self._gradients(logits)
        shape = (-1,) if self._dimension == 1 else gradients.shape
        return gradients.reshape(shape), hessians.reshape(shape)

    def _take_finished(self) -> None:
        """Reads the trees that were finished since the last time."""
        if self._finished > self._in_parts:
            self._parts.append(self._trees(self._in_parts, self._finished))
            self._in_parts = self._finished
            if len(self._parts) > 100:
                self._parts = [concatenated(self._parts)]

    def _trees(self, first: int, last: int) -> Forest:
        """Returns the trees of iterations that the booster has, and constant ones beyond."""
        begin, end = first - self._first, last - self._first
        parts = []
        if begin < self._split:
            count = min(end, self._split) - begin
            text = self._booster.model_to_string(start_iteration=begin, num_iteration=count)
            parts.append(forest_from_text(text))
        missing = end - max(begin, self._split)
        if missing > 0:
            parts.append(constant_trees(missing * self._dimension))
        return concatenated(parts)

    def _new_booster(self) -> Any:
        data = self._data
        parameters = {
            **self._settings.parameters(
                data.num_rows, data.matrix.shape[1], self._objective.loss_scale
            ),
            **self._objective.parameters,
        }
        if self._num_threads:
            parameters["num_threads"] = self._num_threads
        library = lightgbm()
        dataset = library.Dataset(
            data.matrix,
            label=np.zeros(data.num_rows, np.float32) if self._labels is None else self._labels,
            weight=None if self._labels is None else data.weights,
            init_score=self._scores.reshape(-1, order="F"),
            params=parameters,
        )
        return library.Booster(parameters, dataset)

    def _starting_scores(self, forest: Forest) -> Any:
        """Returns bias and trees added in the order in which boosting adds them, to the same bits."""
        data, dimension = self._data, self._dimension
        scores = np.tile(self._bias, (data.num_rows, 1))
        if not forest.num_trees:
            return scores
        text = text_from_forest(forest, data.matrix.shape[1], dimension)
        booster = lightgbm().Booster(model_str=text)
        step = max(1, _TREES_AT_A_TIME // dimension)
        ends: Any = np.append(forest.root, forest.num_nodes)
        is_leaf = forest.is_leaf
        for begin in range(0, forest.num_trees // dimension, step):
            leaves = booster.predict(
                data.matrix, pred_leaf=True, start_iteration=begin, num_iteration=step
            ).reshape(data.num_rows, -1)
            for offset in range(leaves.shape[1]):
                tree = begin * dimension + offset
                nodes = slice(ends[tree], ends[tree + 1])
                values = forest.value[nodes][is_leaf[nodes]]
                scores[:, tree % dimension] += values[leaves[:, offset].astype(np.int64)]
        return scores
