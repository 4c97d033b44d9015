"""Boosting: grows a forest tree by tree over the training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from estimator_core.boosted_trees.early_stopping import Validation
from estimator_core.boosted_trees.forest import Forest, concatenated, constant_trees
from estimator_core.boosted_trees.library import lightgbm
from estimator_core.boosted_trees.model_text import forest_from_text, text_from_forest
from estimator_core.boosted_trees.objectives import Objective
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.boosted_trees.training_data import TrainingData, without_rare_values
from estimator_core.logs import logger

_SMALL = 1e15  # its square is a float32
_SMALLEST = float(np.finfo(np.float32).tiny)
_TREES_AT_A_TIME = 10  # bounds the memory for the leaves of all rows


class BoostingState(NamedTuple):
    """A forest and the progress of its training, between two training steps."""

    forest: Forest  # The trees. The trees of the unfinished iteration have the layers grown so far.
    bias: Any  # Logits before the first tree, float64 `[logits_dimension]`
    finished: int  # Number of iterations whose trees are finished
    steps_in_tree: int  # Steps made for the unfinished iteration
    warm_started: int  # Number of iterations from a warm start; `n_trees` are grown on top of them


class Boosting:
    """Grows trees as training steps are made.

    A tree is grown whole when its first layer is due; until the last layer is due, `state` cuts it to the
    layers that are. The library grows the same trees from the same scores: training that continues
    from a state grows the same trees as training without a break.

    `labels`: float32 `[rows]` for one of the library's objectives; None for `BY_GRADIENTS`.
    `gradients`: function from logits `[rows, logits_dimension]` to gradients and Hessians of the same
    shape; called for `BY_GRADIENTS`.
    `num_threads`: number of threads of the library; None lets it choose.
    `validation`: held-out rows that end the training early; None grows all trees.
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
        validation: Validation | None = None,
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
        self._parameters = self._library_parameters(num_threads)
        self._finished = state.finished
        self._steps_in_tree = state.steps_in_tree
        self._first = state.finished  # iterations before the booster's
        self._parts = [state.forest.trees(0, state.finished * self._dimension)]
        self._in_parts = state.finished
        self._validation = validation
        if validation:
            threads = self._parameters["num_threads"]
            validation.start(self._bias, self._warm_started, threads)
        self._scores = self._starting_scores(self._parts[0])
        self._largest_score = np.abs(self._scores).max()
        self._booster = self._new_booster()
        self._grown = 0  # iterations grown since `_first`
        self._split = 0  # iterations that the booster has: the others found no split

    @property
    def steps_left(self) -> int:
        """Training steps until all trees are finished."""
        last = self._warm_started + self._settings.n_trees
        if self._validation:
            last = min(last, self._validation.last)
        trees = last - self._finished
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
        """
        if self._by_own_gradients:
            return steps < self.steps_left_in_tree  # the tree is not grown yet
        ends = self._booster.lower_bound(), self._booster.upper_bound()
        return not self._largest_score + np.abs(ends).max() < _SMALL  # it may be NaN

    def advance(self, steps: int) -> None:
        """Makes training steps, and grows the trees that they finish."""
        self._steps_in_tree += steps
        while self._steps_in_tree >= self._settings.steps_per_tree:
            self._grow_trees(self._finished + 1)
            self._finished += 1
            self._steps_in_tree -= self._settings.steps_per_tree
            if self.steps_left == 0:
                self.judge()

    def judge(self) -> None:
        """Judges the iterations that were finished since the last time; this may move the end away."""
        if self._validation is None:
            return
        new = range(self._validation.iterations - self._first, self._finished - self._first)
        indices = (index if index < self._split else None for index in new)
        self._validation.judge(self._booster, indices)

    def state(self) -> BoostingState:
        """Returns the forest after the steps made so far; at the end, the best one of the validation."""
        layers = self._steps_in_tree // self._settings.n_batches_per_layer
        if layers:
            self._grow_trees(self._finished + 1)
        # Read the trees that were finished since the last call.
        if self._finished > self._in_parts:
            self._parts.append(self._trees(self._in_parts, self._finished))
            self._in_parts = self._finished
            if len(self._parts) > 100:
                self._parts = [concatenated(self._parts)]
        parts = [*self._parts]
        if layers:
            parts.append(self._trees(self._finished, self._finished + 1).truncated(layers))
        forest, finished = concatenated(parts), self._finished
        if self._validation and self.steps_left == 0:
            finished = self._validation.best
            forest = forest.trees(0, finished * self._dimension)
        return BoostingState(forest, self._bias, finished, self._steps_in_tree, self._warm_started)

    def logits(self) -> Any:
        """Returns the training data's logits by the finished trees, float64 `[rows, logits_dimension]`.

        Call it before `state`, which grows the next tree.
        """
        if self._grown == 0:
            return self._scores
        kept = []

        def keep(predictions: Any, _: Any) -> tuple[str, float, bool]:
            kept.append(np.array(predictions))
            return "kept", 0.0, False

        self._booster.eval_train(keep)
        logits = self._objective.logits(kept[0])
        return logits.reshape(self._data.num_rows, self._dimension, order="F")

    def _grow_trees(self, iterations: int) -> None:
        while self._first + self._grown < iterations:
            if self._split == self._grown:
                self._grow()
            self._grown += 1

    def _grow(self) -> None:
        def by_gradients(scores: Any, _: Any) -> tuple[Any, Any]:
            logits = np.asarray(scores).reshape(self._data.num_rows, self._dimension, order="F")
            gradients, hessians = self._gradients(logits)
            shape = (-1,) if self._dimension == 1 else gradients.shape
            return gradients.reshape(shape), hessians.reshape(shape)

        fobj = by_gradients if self._by_own_gradients else None
        if not self._booster.update(fobj=fobj):
            self._split += 1
            return
        logger.info(
            "After %d iterations, no split lowers the loss any more: further trees are single leaves.",
            self._first + self._grown,
        )

    def _trees(self, first: int, last: int) -> Forest:
        """Returns the trees of iterations `first` to before `last`; constant ones if no split was found."""
        begin, end = first - self._first, last - self._first
        parts = []
        if begin < self._split:
            count = min(end, self._split) - begin
            model_text = self._booster.model_to_string(start_iteration=begin, num_iteration=count)
            parts.append(forest_from_text(model_text))
        missing = end - max(begin, self._split)
        if missing > 0:
            parts.append(constant_trees(missing * self._dimension))
        return concatenated(parts)

    def _library_parameters(self, num_threads: int | None) -> dict[str, Any]:
        data = self._data
        parameters = {
            **self._settings.parameters(data.num_rows, data.matrix.shape[1], self._objective.loss_scale),
            **self._objective.parameters,
        }
        if num_threads:
            parameters["num_threads"] = num_threads
        return parameters

    def _new_booster(self) -> Any:
        data, parameters = self._data, self._parameters
        library = lightgbm()
        max_weight = 1.0 if data.weights is None else float(np.nanmax(data.weights))
        by_weight = parameters["min_sum_hessian_in_leaf"] / (
            self._objective.max_hessian * max(max_weight, _SMALLEST)
        )
        min_rows = max(by_weight, parameters["min_data_in_leaf"])
        dataset = library.Dataset(
            without_rare_values(data.matrix, min_rows),
            label=np.zeros(data.num_rows, np.float32) if self._labels is None else self._labels,
            weight=None if self._labels is None else data.weights,
            init_score=self._scores.reshape(-1, order="F"),
            params=parameters,
        )
        return library.Booster(parameters, dataset)

    def _starting_scores(self, forest: Forest) -> Any:
        """Returns the scores of bias and trees, added in boosting's order for bitwise equality."""
        data, dimension = self._data, self._dimension
        scores = np.tile(self._bias, (data.num_rows, 1))
        if not forest.num_trees:
            return scores
        model_text = text_from_forest(forest, data.matrix.shape[1], dimension)
        booster = lightgbm().Booster(model_str=model_text)
        step = max(1, _TREES_AT_A_TIME // dimension)
        ends: Any = np.append(forest.root, forest.num_nodes)
        is_leaf = forest.is_leaf
        iterations = forest.num_trees // dimension
        if self._validation:
            self._validation.judge(booster, range(iterations))
        for begin in range(0, iterations, step):
            leaves = booster.predict(
                data.matrix,
                pred_leaf=True,
                start_iteration=begin,
                num_iteration=step,
                num_threads=self._parameters["num_threads"],
            ).reshape(data.num_rows, -1)
            for offset in range(leaves.shape[1]):
                tree = begin * dimension + offset
                nodes = slice(ends[tree], ends[tree + 1])
                values = forest.value[nodes][is_leaf[nodes]]
                scores[:, tree % dimension] += values[leaves[:, offset].astype(np.int64)]
        return scores
