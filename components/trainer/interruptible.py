"""A training that saves a checkpoint before a signal ends it."""

from typing import Any

import estimator_core
from components.interruption import interruption
from estimator_core import tf1


def train_and_evaluate(
    estimator: estimator_core.Estimator,
    train_spec: estimator_core.TrainSpec,
    eval_spec: estimator_core.EvalSpec,
) -> None:
    """Trains as `estimator_core.train_and_evaluate` does; a signal ends it behind its checkpoint.

    Args:
        estimator: The Estimator to train.
        train_spec: Its `TrainSpec`.
        eval_spec: Its `EvalSpec`.

    Raises:
        RunInterruptedError: A signal has come. What was trained is saved.
    """
    train_spec = train_spec._replace(
        hooks=(*train_spec.hooks, _StopIfInterrupted()),
        saving_listeners=(_EndBehindCheckpoint(), *train_spec.saving_listeners),
    )
    try:
        estimator_core.train_and_evaluate(estimator, train_spec, eval_spec)
    finally:
        interruption.is_held = False
    interruption.check()


class _StopIfInterrupted(tf1.train.SessionRunHook):
    """Holds exceptions back as long as there are steps that are not saved, and stops the training."""

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns None: it is called at the end of each session call, which is soon enough."""
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        """Counts nothing."""
        del steps

    def before_run(self, run_context: Any) -> None:
        """Holds exceptions back: there will be a step to save."""
        del run_context
        interruption.is_held = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops the training if a signal has come: the saver saves at its end."""
        del run_values
        if interruption.reason is not None:
            run_context.request_stop()


class _EndBehindCheckpoint(tf1.train.CheckpointSaverListener):
    """Lets a signal raise once all steps are saved, before any evaluation of the checkpoint."""

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Raises RunInterruptedError if a signal has come."""
        del session, global_step_value
        interruption.is_held = False
        interruption.check()
