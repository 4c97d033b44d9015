"""ExamplesPerSecondHook: logs the speed of a TPUEstimator's training, in steps and in examples."""

from __future__ import annotations

import math
from typing import Any

from estimator_core import tf1
from estimator_core.hooks.intervals import steps_until_triggered
from estimator_core.logs import logger
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.sharding import loop_size


class ExamplesPerSecondHook(tf1.train.SessionRunHook):
    """Logs steps and examples per second, and writes both as summaries.

    `batch_size`: examples of one step, on all cores together; None logs only steps.
    `output_dir`: directory of the event file; None writes none.
    """

    def __init__(self, batch_size: int | None, every_n_steps: int, output_dir: str | None):
        self._batch_size = batch_size
        self._timer = tf1.train.SecondOrStepTimer(every_steps=every_n_steps)
        self._output_dir = output_dir

    def begin(self) -> None:
        """Opens the event file and finds the global step."""
        directory = self._output_dir
        self._writer = None if directory is None else tf1.summary.FileWriterCache.get(directory)
        self._global_step = tf1.train.get_global_step()

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns the number of steps until the next line; the first step starts the clock."""
        return steps_until_triggered(self._timer, global_step)

    def skip_steps(self, steps: int) -> None:
        """Does nothing: the global step counts the steps."""
        del steps

    def before_run(self, run_context: Any) -> Any:
        """Requests the global step."""
        del run_context
        return tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Logs when a line is due; the first step only starts the clock."""
        # The fetched value may be from before or after the step: ask the timer about both.
        if not self._timer.should_trigger_for_step(run_values.results + 1):
            return
        global_step = int(run_context.session.run(self._global_step))
        if not self._timer.should_trigger_for_step(global_step):
            return
        secs, steps = self._timer.update_last_triggered_step(global_step)
        if not secs:
            return
        rates = {"global_step/sec": steps / secs}
        if self._batch_size:
            rates["examples/sec"] = self._batch_size * steps / secs
        for tag, rate in rates.items():
            logger.info("%s: %g", tag, rate)
            if self._writer is not None:
                summary = tf1.Summary(value=[tf1.Summary.Value(tag=tag, simple_value=rate)])
                self._writer.add_summary(summary, global_step)


def log_every_n_steps(config: RunConfig) -> int | None:
    """Returns the steps between two log lines: `log_step_count_steps / iterations_per_loop`, rounded up.

    Source: tf.estimator 2.15 divides by `iterations_per_loop` with `use_tpu=False` as well. If that is a
    time, it does not divide.
    """
    if not config.log_step_count_steps:
        return None
    size = loop_size(config.tpu_config.iterations_per_loop)
    if size.secs is not None:
        return config.log_step_count_steps
    return math.ceil(config.log_step_count_steps / size.steps)
