"""Metrics and functions of a live Keras model, for its copies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras

from estimator_core.keras_in_graph import keras_internals

_PLAIN = (bool, int, float, str, type(None))


def fresh_metric(metric: Any) -> Any:
    """Returns a copy of a metric in the current graph; names and functions as they are."""
    if isinstance(metric, type) or not hasattr(metric, "update_state"):
        return metric
    config = metric.get_config()
    functions = {}
    function = keras_internals.metric_function(metric)
    if isinstance(config.get("fn"), Mapping) and function is not None:
        # A configuration has only the name of a function, which may not be registered.
        config["fn"] = _reference("metric_fn")
        functions["metric_fn"] = function
    with keras.utils.custom_object_scope(functions):
        fresh = type(metric).from_config(config)
    _check_is_alike(metric, fresh)
    return fresh


def _check_is_alike(metric: Any, fresh: Any) -> None:
    made = [tuple(variable.shape) for variable in fresh.variables]
    # A metric may create further variables when it sees data.
    had = [tuple(variable.shape) for variable in metric.variables][: len(made)]
    arguments = inspect.signature(type(metric).__init__).parameters
    differing = [
        name
        for name in arguments
        for attribute in (name, f"_{name}")
        if isinstance(vars(metric).get(attribute), _PLAIN)
        and vars(metric).get(attribute) != vars(fresh).get(attribute)
    ]
    if made != had or differing:
        raise ValueError(
            "A copy of the metric from its configuration differs from the metric itself: its "
            "get_config() must return all arguments of its constructor. "
            f"Received: metric={metric!r} with {differing or had} in place of {made}"
        )


def with_live_functions(
    config: Mapping[str, Any], layers: list[Any]
) -> tuple[dict[str, Any], dict[str, Callable[..., Any]]]:
    """Returns a model's configuration with references to its Lambda layers' functions, and the functions.

    A configuration has these functions as bytes without their module, or by name only; since the model
    is live, the functions themselves can be used.
    """
    lambdas = {layer.name: layer for layer in layers if isinstance(layer, keras.layers.Lambda)}
    functions: dict[str, Callable[..., Any]] = {}

    def replaced(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(replaced(item) for item in value)
        if not isinstance(value, dict):
            return value
        value = {key: replaced(item) for key, item in value.items()}
        own = value.get("config")
        layer = lambdas.get(own.get("name", "")) if isinstance(own, dict) else None
        if layer is not None and "function" in own:
            for key, function in (
                ("function", layer.function),
                ("output_shape", keras_internals.lambda_output_shape(layer)),
            ):
                if callable(function):
                    name = f"{layer.name}_{key}"
                    own[key] = _reference(name)
                    functions[name] = function
        return value

    return (replaced(config), functions) if lambdas else (dict(config), functions)


def _reference(name: str) -> dict[str, Any]:
    """Returns the reference of a configuration to a function among the custom objects."""
    return {"module": "builtins", "class_name": "function", "config": name, "registered_name": name}
