"""Alternating training and evaluation in one process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from estimator_core import tf1
from estimator_core.estimator import Estimator
from estimator_core.logs import logger
from estimator_core.training.evaluator import Evaluator
from estimator_core.training.specs import EvalSpec, TrainSpec


def train_and_evaluate_in_turns(
    estimator: Estimator,
    train_spec: TrainSpec,
    eval_spec: EvalSpec,
    after_training: Callable[[], None] | None = None,
    evaluator: Evaluator | None = None,
) -> tuple[dict[str, Any] | None, list[bytes | None]]:
    """Trains with evaluations at checkpoints; then evaluates and exports at the end.

    Returns the metrics of the last evaluation, or None, and the results of its exporters.
    """
    config = estimator.config
    logger.info(
        "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint "
        "frequency is determined based on RunConfig arguments: save_checkpoints_steps %s or "
        "save_checkpoints_secs %s.",
        config.save_checkpoints_steps,
        config.save_checkpoints_secs,
    )
    evaluator = evaluator or Evaluator(estimator, eval_spec)
    listener = _EvaluateAtCheckpoints(evaluator, eval_spec, train_spec.max_steps)
    with contextlib.closing(listener):
        estimator.train(
            train_spec.input_fn,
            hooks=train_spec.hooks,
            max_steps=train_spec.max_steps,
            saving_listeners=[*train_spec.saving_listeners, listener],
        )
    if after_training is not None:
        after_training()
    evaluation = evaluator.evaluate_and_export(is_the_final_export=True)
    if evaluation is None:
        return None, []
    return evaluation.metrics, evaluation.export_results


class _EvaluateAtCheckpoints(tf1.train.CheckpointSaverListener):
    """Evaluates after checkpoints as `eval_spec` requires, always after the first new checkpoint."""

    def __init__(self, evaluator: Evaluator, eval_spec: EvalSpec, max_steps: int | None):
        self._evaluator = evaluator
        self._throttle_secs = eval_spec.throttle_secs
        self._every_n_steps = eval_spec.every_n_steps
        self._max_steps = max_steps
        self._timer = tf1.train.SecondOrStepTimer(every_secs=self._throttle_secs or 1e-9)
        self._last_step: int | None = None  # of the last evaluation or the start of this session
        self._is_closed = False

    def close(self) -> None:
        """Ends the evaluations: a user's saver hook still calls this listener in later trainings."""
        self._is_closed = True

    def begin(self) -> None:
        """Restarts the timer for a session."""
        self._timer.reset()
        self._last_step = None

    def after_save(self, session: Any, global_step_value: int) -> bool:
        """Evaluates the checkpoint just saved, except before the first step; returns whether to stop."""
        del session
        if self._is_closed:
            return False
        if self._last_step is None:
            self._last_step = global_step_value
        elif self._is_due(global_step_value):
            self._last_step = global_step_value
            self._timer.update_last_triggered_step(global_step_value)
            is_final = self._max_steps is not None and global_step_value >= self._max_steps
            self._evaluator.evaluate_and_export(is_the_final_export=is_final)
        if not self._evaluator.is_over:
            self._log_next(global_step_value)
        return self._evaluator.is_over

    def _is_due(self, step: int) -> bool:
        if self._every_n_steps is not None:
            return step // self._every_n_steps > (self._last_step or 0) // self._every_n_steps
        if self._timer.should_trigger_for_step(step):
            return True
        logger.info("Skip the current checkpoint eval due to throttle secs (%s secs).", self._throttle_secs)
        return False

    def _log_next(self, step: int) -> None:
        last = float("inf") if self._max_steps is None else self._max_steps
        if step >= last:
            return
        if self._every_n_steps is not None:
            following = (step // self._every_n_steps + 1) * self._every_n_steps
            when = "at the end of training" if following > last else f"at step {following}"
        elif self._throttle_secs and self._timer.last_triggered_step() is not None:
            when = f"at the first checkpoint {self._throttle_secs} s after the start of the last one"
        else:
            when = "at the next checkpoint"
        logger.info("Next evaluation: %s.", when)
