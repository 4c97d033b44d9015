"""Starting from the weights of another model."""

from __future__ import annotations

from estimator_core import tf1
from estimator_core.checkpoints import warm_start_report
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings
from estimator_core.logs import logger


def warm_start(settings: WarmStartSettings) -> None:
    """Makes the variables of the default graph start with the values that `settings` select.

    Raises:
        ValueError: There is no such checkpoint, a variable is missing from it or has another shape
            there, or the settings name variables that the model does not have.
    """
    logger.info("Warm-starting with WarmStartSettings: %s", settings)
    report = warm_start_report.report(settings)
    report.check()
    for warning in report.warnings:
        logger.warning("%s", warning)
    tf1.train.warm_start(
        report.checkpoint_path,
        settings.vars_to_warm_start,
        dict(settings.var_name_to_vocab_info or {}),
        dict(settings.var_name_to_prev_var_name or {}),
    )
