"""warm_start_report: a report of the effect of `warm_start_from`, before training."""

from __future__ import annotations

from typing import Any

from estimator_core.checkpoints import warm_start_report as checkpoints_report
from estimator_core.checkpoints import warm_start_settings
from estimator_core.checkpoints.warm_start_report import WarmStartReport
from estimator_core.estimator import Estimator
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn


def warm_start_report(
    estimator: Estimator, input_fn: InputFn, warm_start_from: Any = None
) -> WarmStartReport:
    """Returns the start of each variable of the model, without training it.

    The graph of training is built in memory; nothing runs, and nothing is written.

    Example:
        >>> report = warm_start_report(classifier, train_input_fn)  # doctest: +SKIP
        >>> print(report)  # doctest: +SKIP
        Warm start from old/model.ckpt-100: 2 loaded, 1 remapped, 1 fresh
        variable           shape   start     in the checkpoint
        dnn/logits/bias    [3]     loaded    [3]
        ...
        >>> report.check()  # raises when training would  # doctest: +SKIP

    Args:
        estimator: The Estimator to be trained.
        input_fn: See `Estimator.train`.
        warm_start_from: A checkpoint, a directory of checkpoints, a SavedModel or
            `WarmStartSettings`; None takes the Estimator's own.

    Raises:
        ValueError: There is nothing to start from, or the settings name variables that the model
            does not have.
    """
    settings = warm_start_settings.as_settings(warm_start_from) or estimator.warm_start_settings
    if settings is None:
        raise ValueError(
            "There is nothing to report: give warm_start_from here or to the Estimator. "
            f"Received: warm_start_from={warm_start_from!r}"
        )
    with estimator.build_program(ModeKeys.TRAIN, input_fn).scope():
        return checkpoints_report.report(settings)
