"""Hooks of a TPUEstimator: its loss, its speed, and a check that an evaluation has all its steps."""

from __future__ import annotations

import math
import time
from typing import Any

from estimator_core import tf1
from estimator_core.hooks.intervals import steps_until_triggered
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
        del run_context
        is_due = self._loops % self._every_n_loops == 0
        self._loops += 1
        return tf1.train.SessionRunArgs(self._loss) if is_due else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
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


class AllStepsHook(tf1.train.SessionRunHook):
    """Raises if the input ends before the steps of an evaluation are done.

    Source: on a TPU, the input_fn of an evaluation must not come to an end. Hooks there are called once,
    around all steps, so none can end an evaluation.
    """

    def __init__(self, steps: int):
        self._steps = steps
        self._done = 0
        self._is_in_step = False

    def begin(self) -> None:
        self._done = 0
        self._is_in_step = False

    def before_run(self, run_context: Any) -> None:
        """Records that a step begins, which may find no batch."""
        del run_context
        self._is_in_step = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_context, run_values
        self._done += 1
        self._is_in_step = False

    def end(self, session: Any) -> None:
        """Checks that each step found a batch; a hook may end an evaluation before all steps."""
        del session
        if self._is_in_step and self._done < self._steps:
            raise ValueError(
                "With use_tpu=True, the input of an evaluation must not end before its steps are done: let "
                f"the dataset repeat(), or reduce steps. Received: steps={self._steps}, but only "
                f"{self._done} batches"
            )


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
