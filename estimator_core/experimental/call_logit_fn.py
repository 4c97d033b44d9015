"""Calls of a logit function with the arguments that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core.spec.calling import arg_names


def call_logit_fn(
    logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any
) -> Any:
    """Returns the logits of `logit_fn` for `features`.

    Args:
        logit_fn: Function of `features` and any of `mode`, `params` and `config`.
        features: Features from input_fn.
        mode: One of `ModeKeys`.
        params: Hyperparameters.
        config: `RunConfig`.

    Returns:
        `Tensor`, or dict of head name to `Tensor`, `[batch_size, logits_dimension]`.

    Raises:
        ValueError: `logit_fn` returns something else.

    Source: `tf.estimator.experimental.call_logit_fn`.
    """
    names = arg_names(logit_fn)
    optional = {"mode": mode, "params": params, "config": config}
    logits = logit_fn(
        features=features, **{name: value for name, value in optional.items() if name in names}
    )
    tensors = logits.values() if isinstance(logits, Mapping) else [logits]
    if not all(isinstance(tensor, (tf.Tensor, tf.SparseTensor)) for tensor in tensors):
        raise ValueError(
            f"logit_fn should return a Tensor or a dict of Tensors. Received: {logits!r}"
        )
    return logits
