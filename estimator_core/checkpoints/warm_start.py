"""Starting from the weights of another model."""

from __future__ import annotations

import os

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints import warm_start_report
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings
from estimator_core.logs import logger


def warm_start(settings: WarmStartSettings) -> None:
    """Makes the variables of the default graph start with the values that `settings` select."""
    logger.info("Warm-starting with WarmStartSettings: %s", settings)
    report = warm_start_report.report(settings)
    report.check()
    for warning in report.warnings:
        logger.warning("%s", warning)
    path = report.checkpoint_path
    # On ram://, see `open_checkpoint`; TensorFlow looks for a checkpoint in it.
    if tf.io.gfile.isdir(path):
        directory = os.path.dirname(path)
        if tf.train.latest_checkpoint(directory) != path:
            raise ValueError(
                "On this file system TensorFlow can warm-start only from the newest checkpoint of a "
                f"directory. Copy the checkpoint to a local folder. Received: {path!r}"
            )
        path = directory
    tf1.train.warm_start(
        path,
        settings.vars_to_warm_start,
        dict(settings.var_name_to_vocab_info or {}),
        dict(settings.var_name_to_prev_var_name or {}),
    )
