"""Metrics and functions of a live Keras model, handed over to the copies of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras

from estimator_core.keras_in_graph import keras_internals

_PLAIN = (bool, int, float, str, type(None))


def fresh_metric(metric: Any) -> Any:
    """Returns a metric of the current graph; names and functions stand for themselves.

    Args:
        metric: A metric of Keras 3 or tf_keras, or what else `compile` takes as one.

    Raises:
        ValueError: The metric's configuration does not tell all of it.
    """
    if isinstance(metric, type) or not hasattr(metric, "update_state"):
        return metric
    config = metric.get_config()
    functions = {}
    function = keras_internals.metric_function(metric)
    if isinstance(config.get("fn"), Mapping) and function is not None:
        # A configuration has a function by its name only, which nobody needs to have registered.
        config["fn"] = _reference("metric_fn")
        functions["metric_fn"] = function
    with keras.utils.custom_object_scope(functions):
        fresh = type(metric).from_config(config)
    _check_is_alike(metric, fresh)
    return fresh


def _check_is_alike(metric: Any, fresh: Any) -> None:
    made = [tuple(variable.shape) for variable in fresh.variables]
    # A metric may make further variables when it sees data.
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
            "A copy of the metric by its configuration is another one than the metric itself: its "
            "get_config() must return all arguments of its constructor. "
            f"Received: metric={metric!r} with {differing or had} in place of {made}"
        )


def with_live_functions(
    config: Mapping[str, Any], layers: list[Any]
) -> tuple[dict[str, Any], dict[str, Callable[..., Any]]]:
    """Returns a model's configuration that refers to the functions of its Lambda layers, and these.

    A configuration has such a function as bytes without its module, or by its name only; the model is
    a live one, so the functions themselves are at hand.

    Args:
        config: What the model's `get_config` returned.
        layers: All layers of the model.
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
    """Returns how a configuration refers to a function by its name among the custom objects."""
    return {
        "module": "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": name,
    }
