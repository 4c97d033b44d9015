"""Optimizers by name in `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core import tf1
from estimator_core.optimizers.names import optimizer_named

_BY_NAME: dict[str, Callable[..., Any]] = {
    "Adagrad": tf1.train.AdagradOptimizer,
    "Adam": tf1.train.AdamOptimizer,
    "Ftrl": tf1.train.FtrlOptimizer,
    "RMSProp": tf1.train.RMSPropOptimizer,
    "SGD": tf1.train.GradientDescentOptimizer,
}


def optimizer_for(optimizer: Any, learning_rate: float) -> Any:
    """Returns the optimizer in a form that `estimator_core.optimizers.minimize.get_optimizer` takes.

    `optimizer`: A name, for the optimizer of `tf.compat.v1.train`, or any optimizer that `get_optimizer`
    takes.
    """
    if not isinstance(optimizer, str):
        return optimizer
    make = optimizer_named(optimizer, _BY_NAME)
    return lambda: make(learning_rate=learning_rate)
