"""Optimizers of TensorFlow in the model of a shard; they ask nobody how many shards there are."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

from estimator_core import tf1
from estimator_core.execution.class_patches import ClassPatches, Replacement
from estimator_core.execution.current import current_execution

_patches = ClassPatches()
_lock = threading.RLock()


def knowing_shards() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which optimizers of `tf.compat.v1.train` ask the Execution about its shards.

    In other graphs, and where there are no shards, they do what they always do.
    """
    return _patches.needed(_replacements())


def _replacements() -> list[Replacement]:
    optimizer, cross_shard = tf1.train.Optimizer, tf1.tpu.CrossShardOptimizer
    return [
        Replacement(optimizer, "compute_gradients", _averaging),
        Replacement(optimizer, "apply_gradients", _applying_averages),
        Replacement(cross_shard, "compute_gradients", _knowing_shards),
        Replacement(cross_shard, "apply_gradients", _knowing_shards),
    ]


def _averaging(compute_gradients: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute_gradients)
    def compute(self: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = compute_gradients(self, *args, **kwargs)
        return current_execution().average_gradients(pairs)

    return compute


def _applying_averages(apply_gradients: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply_gradients)
    def apply(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        grads_and_vars = current_execution().average_gradients(grads_and_vars)
        return apply_gradients(self, grads_and_vars, *args, **kwargs)

    return apply


def _knowing_shards(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method of `CrossShardOptimizer` that finds the number of shards where it looks for it."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        shards = current_execution().shards_of_optimizers
        if shards is None:
            return method(self, *args, **kwargs)
        context = tf1.tpu_context()
        with _lock:
            before = context.number_of_shards
            context.set_number_of_shards(shards)
            try:
                return method(self, *args, **kwargs)
            finally:
                context.set_number_of_shards(before)

    return call
