"""train_and_evaluate: train, evaluate at checkpoints, export."""

from __future__ import annotations

from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.logs import logger
from estimator_core.training.evaluator import Evaluator
from estimator_core.training.in_turns import train_and_evaluate_in_turns
from estimator_core.training.roles import run_task
from estimator_core.training.specs import EvalSpec, TrainSpec, check_every_n_steps


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[bytes | None]] | None:
    """Trains, evaluates after checkpoints, and evaluates and exports at the end.

    Evaluations come as often as checkpoints (`RunConfig.save_checkpoints_steps` or `_secs`), but
    at least `EvalSpec.throttle_secs` apart; or every `EvalSpec.every_n_steps`. The log announces
    the next one. An interrupted run continues from its newest checkpoint; a finished
    one is evaluated and exported again.

    In a cluster, described by TF_CONFIG, each task calls this function and runs its part: see
    `estimator_core.training.roles`.

    Example:
        >>> train_spec = TrainSpec(train_input_fn, max_steps=1000)  # doctest: +SKIP
        >>> eval_spec = EvalSpec(eval_input_fn, exporters=exporter)  # doctest: +SKIP
        >>> metrics, exports = train_and_evaluate(estimator, train_spec, eval_spec)  # doctest: +SKIP

    Args:
        estimator: The Estimator to train.
        train_spec: `TrainSpec` of the training.
        eval_spec: `EvalSpec` of the evaluations.

    Returns:
        The metrics of the last evaluation, or None, and the results of its exporters. In a cluster,
        the evaluator returns them, and tasks that train return None.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: TF_CONFIG describes a cluster that can't train, or `every_n_steps` does not fit
            the checkpoints.
        RuntimeError: The server of this task of a cluster can't be started.

    Source: `tf.estimator.train_and_evaluate`. Differences: the end of training always is the
    final export, also if it ends with the input or by an early stop; and a finished run
    is evaluated and exported again, since it may have been killed before that.
    """
    return run(estimator, train_spec, eval_spec)


def run(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec, evaluator: Evaluator | None = None
) -> tuple[dict[str, Any] | None, list[bytes | None]] | None:
    """Runs `train_and_evaluate`, with an evaluator of the caller."""
    check_arguments(estimator, train_spec, eval_spec)
    config = estimator.config
    check_every_n_steps(eval_spec, config)
    if config.is_in_cluster:
        return run_task(estimator, train_spec, eval_spec, evaluator=evaluator)
    logger.info("Running training and evaluation locally (non-distributed).")
    return train_and_evaluate_in_turns(estimator, train_spec, eval_spec, evaluator=evaluator)


def check_arguments(estimator: Any, train_spec: Any, eval_spec: Any) -> None:
    """Checks the types of `train_and_evaluate`'s arguments."""
    for name, value, kind in (
        ("estimator", estimator, Estimator),
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` must be a {kind.__name__}. Received: {name}={value!r}")
