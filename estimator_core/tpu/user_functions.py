"""input_fn and model_fn as a TPUEstimator calls them: with the batch size in their params."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from estimator_core import tf1
from estimator_core.logs import logger
from estimator_core.spec.calling import arg_names
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn, ModelFn
from estimator_core.tpu.global_step_order import read_before_write
from estimator_core.tpu.one_replica import without_cross_replica_sums
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec

BATCH_SIZE = "batch_size"
RESERVED_PARAMS = (BATCH_SIZE, "context")
_USE_TPU = "use_tpu"


def input_fn_with_batch_size(input_fn: InputFn, batch_size: int | None) -> Callable[..., Any]:
    """Returns an input_fn that gives `input_fn` the batch size in its `params`.

    Raises:
        TypeError: It is not callable.
        ValueError: It takes no `params`.
    """
    if not callable(input_fn):
        raise TypeError(f"input_fn must be callable. Received: input_fn={input_fn!r}")
    names = arg_names(input_fn)
    _check_takes_params(names, "input_fn", input_fn)

    def call(**arguments: Any) -> Any:
        if batch_size is not None:
            _set(arguments["params"], BATCH_SIZE, batch_size)
        return input_fn(**arguments)

    return _with_arguments(call, names)


def model_fn_on_host(
    model_fn: Callable[..., TPUEstimatorSpec | EstimatorSpec], batch_sizes: Mapping[str, int | None]
) -> ModelFn:
    """Returns the model_fn of an `Estimator` that runs the one of a TPUEstimator without a TPU.

    Where it runs the user's model_fn finds in `params["use_tpu"]`, which is False.

    Args:
        model_fn: Returns a `TPUEstimatorSpec` or an `EstimatorSpec`.
        batch_sizes: Mode to the "batch_size" that it finds in `params`; None leaves that out.
    """
    names = arg_names(model_fn)

    def call(features: Any, mode: str, **arguments: Any) -> EstimatorSpec:
        _check_takes_params(names, "model_fn", model_fn)
        if batch_sizes.get(mode) is not None:
            _set(arguments["params"], BATCH_SIZE, batch_sizes[mode])
        _set(arguments["params"], _USE_TPU, False)
        if "mode" in names:
            arguments["mode"] = mode
        logger.info("Running %s on CPU/GPU", mode)
        with without_cross_replica_sums(tf1.get_default_graph()):
            spec = model_fn(features=features, **arguments)
            if isinstance(spec, TPUEstimatorSpec):
                spec = spec.with_metric_fn()
        if mode == ModeKeys.TRAIN:
            read_before_write(spec.train_op)
        return spec

    return _with_arguments(call, {*names, "mode"})


def _check_takes_params(names: Iterable[str], kind: str, function: Callable[..., Any]) -> None:
    if "params" not in names:
        raise ValueError(
            f"{kind} ({function}) does not include params argument, required by TPUEstimator to pass "
            f"batch size as params['batch_size']. Received: arguments {tuple(names)}"
        )


def _with_arguments(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Returns the function, made to look as if it took `names`: callers ask for its signature."""
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(names)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _set(params: Any, name: str, value: Any) -> None:
    """Sets a hyperparameter in a dict, or in an object of the kind that HParams was."""
    if not hasattr(params, "set_hparam"):
        params[name] = value
    elif name in params:
        params.set_hparam(name, value)
    else:
        params.add_hparam(name, value)
