"""Logging the progress of training: the loss and the global step."""

from __future__ import annotations

import time
from typing import Any

from estimator_core import tf1
from estimator_core.hooks.intervals import steps_until_multiple
from estimator_core.logs import logger


class ProgressHook(tf1.train.SessionRunHook):
    """Logs "loss = ..., step = ..." at intervals, and knows the current step for error messages.

    The step is the global step before the update that the loss belongs to, so the first is 0. With
    variables of TensorFlow 1 (`disable_resource_variables`), it is the step after the update, as in
    tf.estimator.

    `every_n_iter`: steps between two lines; None or 0 logs nothing.
    `last_step`: The global step at the end of training; None before.
    """

    def __init__(self, loss: Any, every_n_iter: int | None):
        self._loss = loss
        self._every_n_iter = every_n_iter
        self._iteration = 0
        self._step: int | None = None
        self._last_time: float | None = None
        self._first_step = 0
        self.last_step: int | None = None

    def begin(self) -> None:
        self._global_step = tf1.train.get_global_step()
        self._iteration = 0
        self._last_time = None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads the global step at which training begins, or resumes after a recovery."""
        del coord
        self._first_step = int(session.run(self._global_step)) - self._iteration

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns the number of steps to the next line."""
        del global_step
        return steps_until_multiple(self._iteration, self._every_n_iter)

    def skip_steps(self, steps: int) -> None:
        """Counts steps that were made without calling the hook."""
        self._iteration += steps

    @property
    def step(self) -> int:
        """The global step before the running step, assuming that each step adds 1."""
        return self._first_step + self._iteration

    def before_run(self, run_context: Any) -> Any:
        """Reads the global step and fetches the loss when a line is due."""
        due = bool(self._every_n_iter) and self._iteration % (self._every_n_iter or 1) == 0
        self._step = int(run_context.session.run(self._global_step)) if due else None
        return tf1.train.SessionRunArgs(self._loss) if due else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_context
        self._iteration += 1
        if self._step is None:
            return
        dtype = self._global_step.dtype  # that of a TensorFlow 1 variable is a reference
        step = self._step if dtype == dtype.base_dtype else self._step + 1
        now = time.monotonic()
        if self._last_time is None:
            logger.info("loss = %s, step = %s", run_values.results, step)
        else:
            seconds = now - self._last_time
            logger.info("loss = %s, step = %s (%.3f sec)", run_values.results, step, seconds)
        self._last_time = now

    def end(self, session: Any) -> None:
        """Reads the global step at which training ended."""
        self.last_step = int(session.run(self._global_step))
