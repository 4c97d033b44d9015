"""What the names of optimizers mean in `tf.compat.v1.estimator`."""

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
    """Returns what `estimator_core.optimizers.minimize.get_optimizer` takes for the same optimizer.

    Args:
        optimizer: A name, which stands for the optimizer of `tf.compat.v1.train`; a class without
            required arguments; or anything that `get_optimizer` takes.
        learning_rate: For an optimizer given by name.

    Raises:
        ValueError: An unknown name.
    """
    if isinstance(optimizer, type):
        return lambda: optimizer()
    if not isinstance(optimizer, str):
        return optimizer
    make = optimizer_named(optimizer, _BY_NAME)
    return lambda: make(learning_rate=learning_rate)
