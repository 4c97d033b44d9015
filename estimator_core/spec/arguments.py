"""Checks of an Estimator's arguments."""

from __future__ import annotations

import math
import numbers
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig


def config_with_model_dir(config: RunConfig | None, model_dir: Any) -> RunConfig:
    """Returns the complete configuration from both arguments of an Estimator."""
    if config is None:
        config = RunConfig()
        logger.info("Using default config.")
    elif not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of RunConfig. Received: config={config!r}")
    config = config.with_session_config()
    if model_dir is not None and model_dir != "":
        model_dir = tf.compat.as_str_any(os.fspath(model_dir))
        if config.model_dir is not None and config.model_dir != model_dir:
            raise ValueError(
                "model_dir is set both in the constructor and in RunConfig, with different values. "
                f"Received: model_dir={model_dir!r}, RunConfig's model_dir={config.model_dir!r}"
            )
        return config.replace(model_dir=model_dir)
    if config.model_dir is None:
        model_dir = tempfile.mkdtemp()
        logger.warning("Using temporary folder as model directory: %s", model_dir)
        return config.replace(model_dir=model_dir)
    return config


def checked_steps(name: str, value: Any) -> int | None:
    """Returns a number of steps as a whole number: 1e4 is 10000, and 12.5 ends in the 13th step.

    `value`: value of the argument; None and infinity mean no end.
    """
    if value is None or value == math.inf:
        return None
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number. Received: {name}={value!r}")
    if not float(value) > 0:
        raise ValueError(f"Must specify {name} > 0. Received: {name}={value}")
    return math.ceil(float(value))


def checked_instances(
    values: Iterable[Any] | None, name: str, kind: type = tf1.train.SessionRunHook
) -> tuple[Any, ...]:
    """Returns the hooks, listeners or exporters in an argument as a tuple."""
    values = tuple(values or ())
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"All {name} must be {kind.__name__} instances. Received: {value!r}")
    return values


def checked_features(features: Any) -> Mapping[Any, Any]:
    """Returns the features from an input_fn, after a check that they are a dict."""
    if not isinstance(features, Mapping):
        raise ValueError(
            "features should be a dictionary of `Tensor`s, by feature name; name a single tensor, as "
            f"in {{'x': tensor}}. Received: features={features!r}"
        )
    return features


def selected_predictions(predictions: Any, keys: Any) -> Any:
    if keys is None:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError(f"predict_keys argument is not valid: predictions are not a dict. Received: {keys}")
    keys = [keys] if isinstance(keys, str) else list(keys)
    selected = {name: value for name, value in predictions.items() if name in keys}
    if not selected:
        raise ValueError(
            f"Expected to run at least one output from {sorted(predictions)}. Received: predict_keys={keys}"
        )
    return selected
