"""Patches of TensorFlow's optimizers, which don't know the number of shards."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.execution.shards.class_patches import ClassPatches, Replacement

_patches = ClassPatches()
_lock = threading.RLock()


def knowing_shards() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which `tf.compat.v1.train` optimizers ask the Execution about its shards.

    In other graphs, and without shards, they work as usual.
    """
    optimizer, cross_shard = tf1.train.Optimizer, tf1.tpu.CrossShardOptimizer
    return _patches.needed(
        [
            Replacement(optimizer, "compute_gradients", _averaging),
            Replacement(optimizer, "apply_gradients", _applying_averages),
            Replacement(cross_shard, "compute_gradients", _knowing_shards),
            Replacement(cross_shard, "apply_gradients", _summing),
        ]
    )


def _averaging(compute_gradients: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute_gradients)
    def compute(self: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = compute_gradients(self, *args, **kwargs)
        execution = current_execution()
        taker = execution.gradient_taker
        return execution.average_gradients(pairs if taker is None else taker.computed(pairs))

    return compute


def _applying_averages(apply_gradients: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply_gradients)
    def apply(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        execution = current_execution()
        taker = execution.gradient_taker
        if taker is not None:
            return _applied_without(
                taker.applied, functools.partial(apply_gradients, self), grads_and_vars, *args, **kwargs
            )
        pairs = execution.average_gradients(grads_and_vars)
        return apply_gradients(self, pairs, *args, **kwargs)

    return apply


def _summing(apply_gradients: Callable[..., Any]) -> Callable[..., Any]:
    return _leaving_out(_knowing_shards(apply_gradients))


def _leaving_out(apply_gradients: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a `CrossShardOptimizer.apply_gradients` that leaves out gradients taken from it."""

    @functools.wraps(apply_gradients)
    def apply(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        taker = current_execution().gradient_taker
        if taker is None:
            return apply_gradients(self, grads_and_vars, *args, **kwargs)
        call = functools.partial(apply_gradients, self)
        return _applied_without(taker.summed_when_applied, call, grads_and_vars, *args, **kwargs)

    return apply


def _applied_without(
    take: Callable[..., Any],
    apply_gradients: Callable[..., Any],
    grads_and_vars: Any,
    global_step: Any = None,
    name: str | None = None,
) -> Any:
    """Applies the gradients that are not taken; if all are taken, only counts the step."""
    all_pairs = list(grads_and_vars)
    pairs = take(all_pairs)
    if all_pairs and not pairs:
        return tf.no_op(name) if global_step is None else tf.group(global_step.assign_add(1))
    return apply_gradients(pairs, global_step=global_step, name=name)


def _knowing_shards(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method of `CrossShardOptimizer` that finds the number of shards in the TPU context."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        shards = current_execution().shards_of_optimizers
        if shards is None:
            return method(self, *args, **kwargs)
        context = tf1.tpu_context()
        with _lock:
            previous = context.number_of_shards
            context.set_number_of_shards(shards)
            try:
                return method(self, *args, **kwargs)
            finally:
                context.set_number_of_shards(previous)

    return call
