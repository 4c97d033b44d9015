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
    """Trains like `estimator_core.train_and_evaluate`; a signal ends it after a checkpoint."""
    train_spec = train_spec._replace(
        hooks=(*train_spec.hooks, _StopIfInterrupted()),
        saving_listeners=(_EndAfterCheckpoint(), *train_spec.saving_listeners),
    )
    try:
        estimator_core.train_and_evaluate(estimator, train_spec, eval_spec)
    finally:
        interruption.is_held = False
    interruption.check()


class _StopIfInterrupted(tf1.train.SessionRunHook):
    """Holds exceptions back while there are unsaved steps, and stops the training."""

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns None: the hook is called at the end of each session call, which is soon enough."""
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        del steps

    def before_run(self, run_context: Any) -> None:
        """Holds exceptions back: there will be a step to save."""
        del run_context
        interruption.is_held = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops the training if a signal came; the saver saves at its end."""
        del run_values
        if interruption.reason is not None:
            run_context.request_stop()


class _EndAfterCheckpoint(tf1.train.CheckpointSaverListener):
    """Lets a signal raise after all steps are saved, before any evaluation of the checkpoint."""

    def after_save(self, session: Any, global_step_value: int) -> None:
        del session, global_step_value
        interruption.is_held = False
        interruption.check()
