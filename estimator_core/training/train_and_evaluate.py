"""train_and_evaluate: train, evaluate at checkpoints, export."""

from __future__ import annotations

from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.logs import logger
from estimator_core.training.in_turns import train_and_evaluate_in_turns
from estimator_core.training.roles import run_task
from estimator_core.training.specs import EvalSpec, TrainSpec, check_every_n_steps


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[bytes | None]] | None:
    """Trains, evaluates after checkpoints, and evaluates and exports at the end.

    Evaluations come as often as checkpoints do (`RunConfig.save_checkpoints_steps` or `_secs`), but
    not within `EvalSpec.throttle_secs` of each other; or every `EvalSpec.every_n_steps`. The log says
    when the next one comes. A run that was interrupted goes on from its newest checkpoint; one that
    had finished is evaluated and exported again.

    In a cluster, as TF_CONFIG describes it, each task calls this and does its part: see
    `estimator_core.training.roles`.

    Example:
        >>> train_spec = TrainSpec(train_input_fn, max_steps=1000)  # doctest: +SKIP
        >>> eval_spec = EvalSpec(eval_input_fn, exporters=exporter)  # doctest: +SKIP
        >>> metrics, exports = train_and_evaluate(estimator, train_spec, eval_spec)  # doctest: +SKIP

    Args:
        estimator: The Estimator to train.
        train_spec: Its `TrainSpec`.
        eval_spec: Its `EvalSpec`.

    Returns:
        The metrics of the last evaluation, None when there was none, and the results of its
        exporters. A task of a cluster that trains returns None, its evaluator the above.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: TF_CONFIG describes a cluster that can't train, or the evaluations asked for fall
            between checkpoints.
        RuntimeError: The server of this task of a cluster can't be started.

    Source: `tf.estimator.train_and_evaluate`. We differ in that the end of training always is the
    final export, also when it ends with the input or with an early stop, and in that a run that had
    finished is evaluated and exported again: it may have been killed before it was.
    """
    for name, value, kind in (
        ("estimator", estimator, Estimator),
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` must be a {kind.__name__}. Received: {name}={value!r}")
    config = estimator.config
    check_every_n_steps(eval_spec, config)
    if config.is_in_cluster:
        return run_task(estimator, train_spec, eval_spec)
    logger.info("Running training and evaluation locally (non-distributed).")
    return train_and_evaluate_in_turns(estimator, train_spec, eval_spec)
