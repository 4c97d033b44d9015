"""Whether it pays to have XLA compile a training step, decided by its operations alone."""

from __future__ import annotations

import math

import tensorflow as tf

from estimator_core.execution.loops.compiled_step import CompiledSteps

_FEWEST_OPERATIONS = 40
_MOST_PRODUCTS = 100_000_000  # of a batch of some size: about 5 ms on one core
# TensorFlow's kernels are faster than XLA's on a CPU, or use more cores.
_HEAVY = (
    "BatchMatMul",
    "Conv",
    "DepthwiseConv",
    "If",
    "MaxPool",
    "PartitionedCall",
    "Stateful",
    "While",
)


def why_not_compiled(step: CompiledSteps, *, chooses: bool) -> str | None:
    """Returns why a step is not compiled; None when it is.

    Args:
        step: The step.
        chooses: Whether it must pay. Otherwise, there must be something to compile.
    """
    reason = step.why_not()
    if reason or not chooses:
        return reason
    compiled = step.operations
    everything = [each for each in step.parts.order if each.name not in step.parts.fixed]
    if len(compiled) < _FEWEST_OPERATIONS:
        return f"only {len(compiled)} operations of {len(everything)} would be compiled"
    for each in everything:
        if each.type.startswith(_HEAVY):
            return f"{each.name!r} ({each.type}) may be slower with it"
    products = sum(_products(step, each) for each in everything if each.type == "MatMul")
    if products > _MOST_PRODUCTS:
        return f"matrices are multiplied for the most part, with {products:.1e} products"
    return None


def _products(step: CompiledSteps, operation: tf.Operation) -> int:
    """Returns how many products of numbers a MatMul computes."""
    shapes = [step.parts.shape(each) for each in operation.inputs]
    if not all(shape.is_fully_defined() for shape in shapes):
        return 0
    left, right = (shape.as_list() for shape in shapes)
    rows = left[1] if operation.get_attr("transpose_a") else left[0]
    return rows * math.prod(right) if left and right else 0
