"""Calls of the user's model_fn and input_fn with the arguments that they take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from estimator_core.logs import logger
from estimator_core.spec.estimator_spec import EstimatorSpec

_MODEL_FN_ARGS = ("features", "labels", "mode", "params", "config")


def arg_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of the arguments that a caller can still pass to `function`."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= set(function.keywords)
        bound |= set(list(_parameters(function.func))[: len(function.args)])
        function = function.func
    return tuple(
        p.name
        for p in _parameters(function).values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in bound
    )


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Returns the parameters of a function; of the wrapped function if it passes all arguments on to it."""
    own = inspect.signature(function, follow_wrapped=False).parameters
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in own.values()):
        return inspect.signature(function).parameters
    return own


def check_model_fn(model_fn: Callable[..., Any], params: Any) -> None:
    """Checks that an Estimator can call `model_fn`."""
    if model_fn is None:
        raise ValueError("model_fn must be provided to Estimator. Received: model_fn=None")
    if not callable(model_fn):
        raise TypeError(f"model_fn must be callable. Received: model_fn={model_fn!r}")
    names = arg_names(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument. Received: {names}")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed "
            "to Estimator."
        )
    required = [
        name
        for name, p in _parameters(model_fn).items()
        if p.default is p.empty and name in names and name not in _MODEL_FN_ARGS
    ]
    if required:
        raise ValueError(
            f"model_fn ({model_fn}) has following not expected args: {required}. It may take "
            f"{_MODEL_FN_ARGS}; bind others with functools.partial."
        )


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, mode: str, params: Any, config: Any
) -> EstimatorSpec:
    """Calls `model_fn` with the arguments that it takes, and returns its result."""
    names = arg_names(model_fn)
    arguments: dict[str, Any] = {}
    if "labels" in names:
        arguments["labels"] = labels
    elif labels is not None:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    for name, value in (("mode", mode), ("params", params), ("config", config)):
        if name in names:
            arguments[name] = value

    logger.info("Calling model_fn.")
    spec = model_fn(features=features, **arguments)
    logger.info("Done calling model_fn.")
    if not isinstance(spec, EstimatorSpec):
        raise ValueError(f"model_fn should return an EstimatorSpec. Received: {spec!r}")
    if spec.mode != mode:  # a model_fn without the argument can't know it
        spec = EstimatorSpec(**{**spec._asdict(), "mode": mode})  # _replace keeps the mode
    return spec


def call_input_fn(
    input_fn: Callable[..., Any], mode: str, params: Any, config: Any, input_context: Any = None
) -> Any:
    """Calls `input_fn` with the arguments that it takes, and returns its result."""
    if not callable(input_fn):
        raise TypeError(f"input_fn must be callable. Received: input_fn={input_fn!r}")
    names = arg_names(input_fn)
    arguments = {"mode": mode, "params": params, "config": config, "input_context": input_context}
    return input_fn(**{name: value for name, value in arguments.items() if name in names})
