"""model_to_estimator with the default of TensorFlow 1: name-based checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.keras_models.graph_model import NAME_BASED
from estimator_core.keras_models.model_to_estimator import model_to_estimator as _model_to_estimator


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | os.PathLike[str] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: Any = None,
    checkpoint_format: str = NAME_BASED,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Estimator:
    """Returns an Estimator of a Keras model; see `estimator_core.model_to_estimator`.

    Its checkpoints are name-based by default.

    Source: `tf.compat.v1.keras.estimator.model_to_estimator`.
    """
    return _model_to_estimator(
        keras_model,
        keras_model_path,
        custom_objects,
        model_dir,
        config,
        checkpoint_format,
        metric_names_map,
        export_outputs,
    )
