"""Ending a worker's training when the chief has saved the last step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from estimator_core import tf1
from estimator_core.checkpoints import reader
from estimator_core.logs import logger
from estimator_core.spec.types import EstimatorLike


def make_stop_at_checkpoint_step_hook(
    estimator: EstimatorLike, last_step: int, wait_after_file_check_secs: float = 30
) -> Any:
    """Returns a hook that ends training at `last_step`.

    Workers continue until the chief has saved a checkpoint of the last step.

    Args:
        estimator: The Estimator that is trained.
        last_step: Global step at which training ends.
        wait_after_file_check_secs: Seconds that a worker at the last step waits between two checks of
            the checkpoints.

    Source: `tf.estimator.experimental.make_stop_at_checkpoint_step_hook`.
    """
    if estimator.config.is_chief:
        return tf1.train.StopAtStepHook(last_step=last_step)
    return StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)


class StopAtCheckpointStepHook(tf1.train.SessionRunHook):
    """Ends training when a checkpoint of `model_dir` has reached `last_step`."""

    def __init__(
        self,
        model_dir: str,
        last_step: int,
        wait_secs: float = 30,
        wait: Callable[[float], None] = time.sleep,
    ):
        if last_step is None or model_dir is None:
            raise ValueError(f"model_dir and last_step must be given. Received: {model_dir=}, {last_step=}")
        self._model_dir = model_dir
        self._last_step = last_step
        self._wait_secs = wait_secs
        self._wait = wait

    def begin(self) -> None:
        self._global_step = tf1.train.get_global_step()

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns the number of steps to the last one; after it, the hook is due at every step."""
        return max(self._last_step - global_step, 1)

    def skip_steps(self, steps: int) -> None:
        """Does nothing: the hook reads the global step."""
        del steps

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops training, or waits if the chief has yet to save the last step."""
        if run_values.results + 1 < self._last_step:
            return
        if reader.saved_global_step(self._model_dir) >= self._last_step:
            logger.info("The last step, %d, has been saved.", self._last_step)
            run_context.request_stop()
        else:
            self._wait(self._wait_secs)
