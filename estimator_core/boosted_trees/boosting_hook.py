"""BoostingHook: grows trees during training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.boosted_trees.boosting import Boosting, BoostingState
from estimator_core.boosted_trees.early_stopping import TreesEarlyStopping, Validation
from estimator_core.boosted_trees.forest_variables import ForestAssignment, ForestVariables
from estimator_core.boosted_trees.head_loss import HeadLoss
from estimator_core.boosted_trees.training_data import TrainingData, read_training_data
from estimator_core.hooks.initialization import InitializationHook
from estimator_core.logs import logger


class BoostingHook(InitializationHook):
    """Reads the training data when a session begins, and grows trees with its steps.

    The graph's own step only increments the global step. Before each step, this hook assigns the forest
    after that step to the variables, so that a checkpoint has the trees of its global step. Training ends
    when all trees are finished.

    `batch`: tensors (matrix, weights or None, loss data, mask of held-out rows or None) of a batch.
    `start`: function of (data, state, gradients, validation) that returns the `Boosting`; `gradients` and
    `validation` are the arguments of `Boosting`.
    `early_stopping`: settings of the validation; None grows all trees.
    """

    def __init__(
        self,
        variables: ForestVariables,
        loss: HeadLoss,
        batch: Any,
        num_batches: int,
        start: Callable[[TrainingData, BoostingState, Any, Validation | None], Boosting],
        steps_per_tree: int,
        early_stopping: TreesEarlyStopping | None = None,
    ):
        self._variables = variables
        self._assignment = ForestAssignment(variables)
        self._head_loss = loss
        self._batch = batch
        self._num_batches = num_batches
        self._start = start
        self._steps_per_tree = steps_per_tree
        self._early_stopping = early_stopping
        self._global_step = tf1.train.get_global_step()
        self.makes_steps = False
        self._steps = tf1.placeholder(tf.int64, [])
        self._count = self._global_step.assign_add(tf.cast(self._steps, self._global_step.dtype))
        self.loss = tf1.get_variable(
            "training_loss",
            [],
            tf.float32,
            tf1.initializers.zeros(),
            trainable=False,
            collections=[tf1.GraphKeys.LOCAL_VARIABLES],  # left out of checkpoints
            use_resource=True,
        )
        self._loss_value = tf1.placeholder(tf.float32, [])
        self._assign_loss = self.loss.assign(self._loss_value)
        self._boosting: Boosting | None = None
        self._data: TrainingData | None = None
        self._loss_iteration: int | None = None  # finished iterations at the last loss
        self._newest_loss = np.float32(0)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads the data, and continues from the session's forest."""
        self._boosting, self._loss_iteration = None, None
        state = self._variables.read(session)
        step = int(session.run(self._global_step))
        if step == 0 and state.finished:
            state = state._replace(warm_started=state.finished)
        grown = (state.finished - state.warm_started) * self._steps_per_tree + state.steps_in_tree
        if self._early_stopping and step > grown:
            logger.info("Training has ended early, with %d iterations of trees.", state.finished)
            coord.request_stop()
            return
        flat = tf.nest.flatten(self._batch)  # None has no tensor

        def next_batch() -> Any:
            values = iter(session.run([tensor for tensor in flat if tensor is not None]))
            tensors = [None if tensor is None else next(values) for tensor in flat]
            return tf.nest.pack_sequence_as(self._batch, tensors)

        self._data, held_out = read_training_data(next_batch, self._num_batches)
        if self._data is None:
            coord.request_stop()
            return
        self._boosting = self._start(
            self._data,
            state,
            lambda logits: self._gradients(session, logits),
            self._validation(session, held_out),
        )
        if self._boosting.steps_left == 0:
            logger.info("All trees are finished already: %d.", self._boosting.finished)
            coord.request_stop()
        self._assignment.run(session, self._boosting.state())

    def _validation(self, session: Any, held_out: TrainingData | None) -> Validation | None:
        if self._early_stopping is None:
            return None
        if held_out is None:
            logger.warning(
                "No row is held out: %r is 0 in all of them, so all trees are grown.",
                self._early_stopping.validation_column,
            )
            return None
        return Validation(
            held_out,
            lambda logits: self._head_loss.value(session, held_out.loss_data, logits),
            self._early_stopping.patience,
            self._early_stopping.report,
        )

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns the steps until the last tree is finished; 1 if `advance` does not make the steps."""
        del global_step
        if not self.makes_steps:
            return 1
        return max(1, self._boosting.steps_left) if self._boosting else None

    def skip_steps(self, steps: int) -> None:
        """Does nothing: `advance` counts the steps."""
        del steps

    def before_run(self, run_context: Any) -> None:
        """Assigns the forest after this step to the variables."""
        if self._boosting:
            self._update_loss(run_context.session, self._boosting)
            self._boosting.advance(1)
            self._assignment.run(run_context.session, self._boosting.state())

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Ends training after the last tree."""
        del run_values
        if self._boosting and self._boosting.steps_left == 0:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Computes the remaining losses for the report."""
        del session
        if self._boosting and self._early_stopping and self._early_stopping.report:
            self._boosting.judge()

    def advance(self, session: Any, steps: int) -> bool:
        """Makes steps at which no hook is due (`Step.advance`)."""
        made, is_nan = 0, False
        while self._boosting and made < steps and not is_nan:
            in_tree = min(steps - made, self._boosting.steps_left_in_tree)
            if self._boosting.may_have_nan_loss(in_tree):
                self._update_loss(session, self._boosting)
            self._boosting.advance(in_tree)
            is_nan = bool(np.isnan(self._newest_loss))  # the loss of the trees before
            made += 1 if is_nan else in_tree
        session.run(self._count, {self._steps: made})
        return is_nan

    def _update_loss(self, session: Any, boosting: Boosting) -> None:
        if self._data is None or self._loss_iteration == boosting.finished:
            return
        logits = boosting.logits().astype(np.float32)
        loss = self._head_loss.value(session, self._data.loss_data, logits)
        session.run(self._assign_loss, {self._loss_value: loss})
        self._newest_loss = loss
        self._loss_iteration = boosting.finished

    def _gradients(self, session: Any, logits: Any) -> tuple[Any, Any]:
        if self._data is None:
            raise RuntimeError("Gradients need training data: no session has read any.")
        loss, *derivatives = self._head_loss.gradients(session, self._data.loss_data, logits)
        self._newest_loss = loss
        return tuple(derivatives)
