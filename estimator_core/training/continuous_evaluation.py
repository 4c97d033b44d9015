"""The evaluator task of a cluster: evaluates the checkpoints that other tasks write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from estimator_core.checkpoints import reader
from estimator_core.checkpoints.latest import with_newest
from estimator_core.estimator import Estimator
from estimator_core.logs import logger
from estimator_core.training.evaluator import Evaluator
from estimator_core.training.specs import EvalSpec

_MIN_WAIT_SECS = 1.0  # between two checks of model_dir without a throttle
_LAST_CHECKPOINT_SECS = 60  # maximum wait for the chief's end after a checkpoint of max_steps

training_is_over = threading.Event()
"""Event in an evaluator's process, set when there will be no more checkpoints.

The evaluator then evaluates the last checkpoint immediately, as final, and ends: it has no other way to know
that training ended before `max_steps`, with its input or by an early stop.
"""


def evaluate_continuously(
    estimator: Estimator,
    eval_spec: EvalSpec,
    max_steps: int | None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = training_is_over.wait,
    is_over: Callable[[], bool] = training_is_over.is_set,
    chief_is_there: Callable[[], bool] = lambda: False,
    evaluator: Evaluator | None = None,
) -> tuple[dict[str, Any] | None, list[bytes | None]]:
    """Evaluates and exports each newest checkpoint of `estimator.model_dir` as it appears.

    It begins after `eval_spec.start_delay_secs`, and leaves `eval_spec.throttle_secs` between the starts
    of two evaluations.

    `max_steps`: global step at which training and this function end; None continues until `is_over`.
    `clock`: function that returns the time in seconds.
    `sleep`: function that waits for a number of seconds.
    Returns the metrics of the last evaluation, None when there was no checkpoint, and the results of its
    exporters.

    Source: `tf.estimator.train_and_evaluate`'s evaluator task.
    """
    logger.info("Waiting %f secs before starting eval.", eval_spec.start_delay_secs)
    sleep(eval_spec.start_delay_secs)
    evaluator = evaluator or Evaluator(estimator, eval_spec)
    while True:
        start = clock()
        # Before the lookup, so that the newest checkpoint is the last.
        was_over = is_over() or evaluator.is_over
        step = with_newest(estimator.latest_checkpoint, _read_step)
        is_final = was_over or (max_steps is not None and step is not None and step >= max_steps)
        if is_final and not was_over:
            for _ in range(_LAST_CHECKPOINT_SECS):
                if is_over() or not chief_is_there():
                    break
                sleep(_MIN_WAIT_SECS)
            step = with_newest(estimator.latest_checkpoint, _read_step)
        evaluation = evaluator.evaluate_and_export(is_the_final_export=is_final)
        if is_final and evaluation is not None:
            logger.info("Exiting evaluation: global step %s, max_steps=%s.", step, max_steps)
            return evaluation.metrics, evaluation.export_results
        if was_over:
            return None, []
        if evaluator.is_over:
            continue
        wait = max(eval_spec.throttle_secs - (clock() - start), _MIN_WAIT_SECS)
        logger.info("Waiting %f secs before starting next eval run.", wait)
        sleep(wait)


def _read_step(path: str | None) -> int | None:
    return None if path is None else reader.read_global_step(path)
