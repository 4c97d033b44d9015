"""LossHook: logs the loss of a TPUEstimator on shards, that of the last step of a loop."""

from __future__ import annotations

import time
from typing import Any

from estimator_core import tf1
from estimator_core.logs import logger
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.sharding import loop_size


class LossHook(tf1.train.SessionRunHook):
    """Logs "loss = ..., step = ..." after the first loop and then at intervals.

    The step is the global step at the end of the loop.
    """

    def __init__(self, every_n_loops: int):
        self._every_n_loops = every_n_loops

    def begin(self) -> None:
        """Looks up the loss, and resets the count."""
        self._loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[-1]
        self._global_step = tf1.train.get_global_step()
        self._loops = 0
        self._last_time: float | None = None

    def before_run(self, run_context: Any) -> Any:
        """Requests the loss if a line is due."""
        del run_context
        is_due = self._loops % self._every_n_loops == 0
        self._loops += 1
        return tf1.train.SessionRunArgs(self._loss) if is_due else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Logs the line that is due."""
        if run_values.results is None:
            return
        step = int(run_context.session.run(self._global_step))
        now = time.monotonic()
        since = "" if self._last_time is None else f" ({now - self._last_time:.3f} sec)"
        logger.info("loss = %s, step = %s%s", run_values.results, step, since)
        self._last_time = now


def log_every_n_loops(config: RunConfig, log_every_n_steps: int) -> int:
    """Returns the loops between two log lines.

    Source: tf.estimator 2.15 counts `log_every_n_steps` loops; if a loop is a time, it logs after
    each.
    """
    is_time = loop_size(config.tpu_config.iterations_per_loop).secs is not None
    return 1 if is_time else log_every_n_steps
