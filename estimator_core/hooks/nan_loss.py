"""Ending training with an error at the first step whose loss is NaN; a warning of an infinite loss."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.logs import logger
from estimator_core.spec.types import Hook


class NanLossHook(tf1.train.SessionRunHook):
    """Checks the loss of each step that is run with hooks, before any other hook sees the step.

    `Step.advance` checks the losses of all other steps. The error is raised after all hooks have seen the
    step.

    `found_at`: Global step after the update that the NaN loss belongs to; None if there was no NaN.
    """

    def __init__(self, loss: Any):
        self._loss = loss
        self.found_at: int | None = None

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns None: the hook is only needed at steps where other hooks are called."""
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        """Does nothing: this hook does not count steps."""
        del steps

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Notes the global step if the loss is NaN; warns if it is infinite."""
        if np.isfinite(run_values.results).all():
            return
        session = run_context.session
        if np.isnan(run_values.results).any():
            self.found_at = int(session.run(tf1.train.get_global_step(session.graph)))
        else:
            report_infinite_loss(session, self._loss)

    def raise_if_found(self) -> None:
        """Ends training if the loss was NaN."""
        if self.found_at is not None:
            raise_nan_loss(self._loss.name, self.found_at)


class SaverUnlessNan(tf1.train.SessionRunHook):
    """Calls a hook that saves checkpoints, except after a step whose loss is NaN.

    So the newest checkpoint comes from a good step, and no listener sees a ruined model.

    `nan_loss`: hook that checks the loss and is called first.
    """

    def __init__(self, saver: Hook, nan_loss: NanLossHook):
        self.saver = saver
        self._nan_loss = nan_loss
        self.begin = saver.begin
        self.after_create_session = saver.after_create_session
        self.end = saver.end

    def __repr__(self) -> str:
        """Returns the name of the wrapped hook, for the log."""
        return repr(self.saver)

    def before_run(self, run_context: Any) -> Any:
        """Returns the fetches of the wrapped hook."""
        return self.saver.before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Lets the hook save, unless the loss is NaN."""
        if self._nan_loss.found_at is None:
            self.saver.after_run(run_context, run_values)


def raise_nan_loss(tensor_name: str, global_step: Any) -> None:
    """Logs and raises the error that ends training."""
    logger.error("Model diverged with loss = NaN.")
    raise NanLossAtStepError(tensor_name, int(global_step))


_reported: weakref.WeakSet[tf.Graph] = weakref.WeakSet()
"""Graphs of trainings whose first infinite loss was reported: each loss after it may be infinite as well."""


def infinite_loss_is_reported(graph: tf.Graph) -> bool:
    """Returns whether a training has reported an infinite loss."""
    return graph in _reported


def report_infinite_loss(session: Any, loss: tf.Tensor, steps_ago: int = 0) -> None:
    """Logs the first infinite loss of a training, which continues."""
    if loss.graph not in _reported:
        _reported.add(loss.graph)
        logger.warning(
            "Infinite loss during training: tensor %r at global step %d. The model may predict NaN from here "
            "on. Look for huge numbers in the input, or a learning rate that is too high. Further infinite "
            "losses are not reported.",
            loss.name,
            session.run(tf1.train.get_global_step(loss.graph)) - steps_ago,
        )


class NanLossAtStepError(tf1.train.NanLossDuringTrainingError):
    """The loss became NaN; names the tensor and the global step."""

    def __init__(self, tensor_name: str, global_step: int):
        super().__init__(tensor_name, global_step)
        self.tensor_name = tensor_name
        self.global_step = global_step

    def __str__(self) -> str:
        return (
            f"NaN loss during training: tensor {self.tensor_name!r} at global step "
            f"{self.global_step}. All checkpoints are from earlier steps. Look for a learning rate that "
            "is too high, a logarithm or a division of zero, or NaN in the input."
        )
