"""Training ends with an error at the first step whose loss is NaN, however many steps a call makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_core import tf1
from estimator_core.logs import logger
from estimator_core.spec.types import Hook


class NanLossHook(tf1.train.SessionRunHook):
    """Looks at the loss of a step around which hooks are called, before any other hook does.

    `Step.advance` looks at the losses of all other steps. The error comes when all hooks have seen the step.

    Args:
        loss: The scalar `Tensor` to watch.

    Attributes:
        found_at: The global step after the update that a NaN loss belongs to; None while there is none.
    """

    def __init__(self, loss: Any):
        self._loss = loss
        self.found_at: int | None = None

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns None: it has to be called only where other hooks are."""
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        """Counts nothing."""
        del steps

    def before_run(self, run_context: Any) -> Any:
        """Asks for the loss."""
        del run_context
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Looks at it."""
        if np.isnan(run_values.results).any():
            session = run_context.session
            self.found_at = int(session.run(tf1.train.get_global_step(session.graph)))

    def raise_if_found(self) -> None:
        """Ends training when the loss was NaN.

        Raises:
            NanLossAtStepError: It was.
        """
        if self.found_at is not None:
            raise_nan_loss(self._loss.name, self.found_at)


class SaverUnlessNan(tf1.train.SessionRunHook):
    """Calls a hook that saves checkpoints, but not after a step whose loss is NaN.

    So the newest checkpoint is that of a good step, and no listener hears of a ruined model.

    Args:
        saver: The hook.
        nan_loss: Knows of the loss; it is called before.
    """

    def __init__(self, saver: Hook, nan_loss: NanLossHook):
        self.saver = saver
        self._nan_loss = nan_loss
        self.begin = saver.begin
        self.after_create_session = saver.after_create_session
        self.end = saver.end

    def __repr__(self) -> str:
        """Returns that of the hook, for the log."""
        return repr(self.saver)

    def before_run(self, run_context: Any) -> Any:
        """Asks for what the hook asks for."""
        return self.saver.before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Lets the hook save, unless the loss is NaN."""
        if self._nan_loss.found_at is None:
            self.saver.after_run(run_context, run_values)


def raise_nan_loss(tensor_name: str, global_step: Any) -> None:
    """Ends training.

    Args:
        tensor_name: Name of the loss in the graph.
        global_step: The global step after the update that the loss belongs to.

    Raises:
        NanLossAtStepError: Always.
    """
    logger.error("Model diverged with loss = NaN.")
    raise NanLossAtStepError(tensor_name, int(global_step))


class NanLossAtStepError(tf1.train.NanLossDuringTrainingError):
    """The loss became NaN: says which tensor and when.

    Args:
        tensor_name: Name of the loss in the graph.
        global_step: The global step after the update that the loss belongs to.
    """

    def __init__(self, tensor_name: str, global_step: int):
        super().__init__(tensor_name, global_step)
        self.tensor_name = tensor_name
        self.global_step = global_step

    def __str__(self) -> str:
        return (
            f"NaN loss during training: tensor {self.tensor_name!r} at global step "
            f"{self.global_step}. The checkpoints are those from before. Look for a learning rate that "
            "is too high, a logarithm or a division of zero, or NaN in the input."
        )
