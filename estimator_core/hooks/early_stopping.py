"""Early stopping: hooks that end training based on evaluation results."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_core import summaries, tf1
from estimator_core.hooks.intervals import steps_until_triggered
from estimator_core.logs import logger
from estimator_core.spec.types import EstimatorLike

_SCOPE = "signal_early_stopping"
_NAME = "STOP"


def make_early_stopping_hook(
    estimator: EstimatorLike,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Returns a training hook that ends training once `should_stop_fn()` is true.

    The chief calls the function and sets a flag that every worker reads.

    Example:
        >>> hook = make_early_stopping_hook(estimator, lambda: os.path.exists("stop"))  # doctest: +SKIP
        >>> train_spec = TrainSpec(train_input_fn, hooks=[hook])  # doctest: +SKIP

    Args:
        estimator: The Estimator that is trained.
        should_stop_fn: Function without arguments that returns True to stop training.
        run_every_secs: Seconds between two calls; None goes by steps.
        run_every_steps: Steps between two calls; None goes by time.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: Not exactly one of the two intervals is given.

    Source: `tf.estimator.experimental.make_early_stopping_hook`.
    """
    if not hasattr(estimator, "config"):
        raise TypeError(f"estimator must be an Estimator. Received: estimator={estimator!r}")
    if not callable(should_stop_fn):
        raise TypeError(f"should_stop_fn must be callable. Received: {should_stop_fn!r}")
    if (run_every_secs is None) == (run_every_steps is None):
        raise ValueError(
            "Exactly one of run_every_secs and run_every_steps must be given. Received: "
            f"run_every_secs={run_every_secs}, run_every_steps={run_every_steps}"
        )
    if not estimator.config.is_chief:
        return _StopWhenFlagged()
    return _FlagWhenTrue(should_stop_fn, run_every_secs, run_every_steps)


def stop_if_higher_hook(
    estimator: EstimatorLike,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Returns a hook that ends training once a metric is above `threshold`.

    Args:
        estimator: The Estimator that is trained.
        metric_name: Name of an evaluation metric, such as "accuracy".
        threshold: Value that ends training.
        eval_dir: Directory of the evaluation summaries; None takes `estimator.eval_dir()`.
        min_steps: Evaluations before this global step don't count.
        run_every_secs: Seconds between two checks; None goes by steps.
        run_every_steps: Steps between two checks; None goes by time.

    Source: `tf.estimator.experimental.stop_if_higher_hook`.
    """
    reached = _threshold_reached(estimator, metric_name, threshold, operator.gt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, reached, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: EstimatorLike,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Returns a hook that ends training once a metric is below `threshold`.

    Arguments are those of `stop_if_higher_hook`.

    Source: `tf.estimator.experimental.stop_if_lower_hook`.
    """
    reached = _threshold_reached(estimator, metric_name, threshold, operator.lt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, reached, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: EstimatorLike,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Returns a hook that ends training when a metric has stopped increasing.

    Args:
        estimator: The Estimator that is trained.
        metric_name: Name of an evaluation metric, such as "accuracy".
        max_steps_without_increase: Training steps without a new highest value that end training.
        eval_dir: Directory of the evaluation summaries; None takes `estimator.eval_dir()`.
        min_steps: Evaluations before this global step don't count.
        run_every_secs: Seconds between two checks; None goes by steps.
        run_every_steps: Steps between two checks; None goes by time.

    Source: `tf.estimator.experimental.stop_if_no_increase_hook`.
    """
    stalled = _no_better_value(
        estimator, metric_name, max_steps_without_increase, operator.gt, eval_dir, min_steps
    )
    return make_early_stopping_hook(estimator, stalled, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: EstimatorLike,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Returns a hook that ends training when a metric has stopped decreasing.

    Arguments are those of `stop_if_no_increase_hook`.

    Source: `tf.estimator.experimental.stop_if_no_decrease_hook`.
    """
    stalled = _no_better_value(
        estimator, metric_name, max_steps_without_decrease, operator.lt, eval_dir, min_steps
    )
    return make_early_stopping_hook(estimator, stalled, run_every_secs, run_every_steps)


def _values(
    estimator: EstimatorLike, metric_name: str, eval_dir: str | None, min_steps: int
) -> list[tuple[int, float]]:
    """Returns (global step, value) of each evaluation that counts, in order."""
    evaluations = summaries.read_evaluations(eval_dir or estimator.eval_dir())
    values = [(step, metrics[metric_name]) for step, metrics in evaluations.items() if metric_name in metrics]
    if evaluations and not values:
        names = sorted(set().union(*evaluations.values()))
        raise ValueError(f"No evaluation has this metric; they have {names}. Received: {metric_name=}")
    return [(step, value) for step, value in values if step >= min_steps]


def _threshold_reached(
    estimator: EstimatorLike,
    metric_name: str,
    threshold: float,
    compare: Callable[[float, float], bool],
    eval_dir: str | None,
    min_steps: int,
) -> Callable[[], bool]:
    def should_stop() -> bool:
        for step, value in _values(estimator, metric_name, eval_dir, min_steps):
            if compare(value, threshold):
                logger.info(
                    'Metric "%s" is %s at step %s: past the threshold of %s.',
                    metric_name,
                    value,
                    step,
                    threshold,
                )
                return True
        return False

    return should_stop


def _no_better_value(
    estimator: EstimatorLike,
    metric_name: str,
    max_steps: int,
    is_better: Callable[[float, float], bool],
    eval_dir: str | None,
    min_steps: int,
) -> Callable[[], bool]:
    def should_stop() -> bool:
        best: tuple[int, float] | None = None
        for step, value in _values(estimator, metric_name, eval_dir, min_steps):
            if best is None or is_better(value, best[1]):
                best = (step, value)
            if step - best[0] >= max_steps:
                logger.info(
                    'No better "%s" for %s steps: the best was %s at step %s.',
                    metric_name,
                    step - best[0],
                    best[1],
                    best[0],
                )
                return True
        return False

    return should_stop


def _stop_flag() -> Any:
    """Returns the variable that tells every worker to stop; it is saved in checkpoints, too."""
    with tf1.variable_scope(_SCOPE, reuse=tf1.AUTO_REUSE):
        return tf1.get_variable(
            _NAME,
            shape=[],
            dtype=tf.bool,
            initializer=tf1.initializers.constant(False),
            collections=[tf1.GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _FlagWhenTrue(tf1.train.SessionRunHook):
    """Sets the flag on the chief when the user's function returns true."""

    calls_the_user = True  # should_stop_fn may look for the newest checkpoint

    def __init__(
        self, should_stop_fn: Callable[[], bool], run_every_secs: float | None, run_every_steps: int | None
    ):
        self._should_stop_fn = should_stop_fn
        self._timer = tf1.train.SecondOrStepTimer(run_every_secs, run_every_steps)

    def begin(self) -> None:
        self._global_step = tf1.train.get_global_step()
        flag = _stop_flag()
        self._raise_flag = flag.assign(True)
        self._lower_flag = flag.assign(False)

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        self._step = int(session.run(self._global_step))
        session.run(self._lower_flag)  # restored from a stopped run, it would stop this one as well

    def steps_until_due(self, global_step: int) -> int | None:
        return steps_until_triggered(self._timer, global_step - 1)  # it uses the step before the update

    def skip_steps(self, steps: int) -> None:
        self._step += steps

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = int(run_values.results)
        if step == self._step + 1:
            step = self._step  # the session may read it before or after the update
        self._step = step + 1
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            logger.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._raise_flag)
            run_context.request_stop()


class _StopWhenFlagged(tf1.train.SessionRunHook):
    """Stops a worker when the chief has set the flag."""

    def begin(self) -> None:
        self._flag = _stop_flag()

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf1.train.SessionRunArgs(self._flag)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            logger.info("The chief has requested early stopping.")
            run_context.request_stop()
