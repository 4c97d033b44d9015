"""Deciding by its operations whether compiling a training step by XLA is worthwhile."""

from __future__ import annotations

import math

import tensorflow as tf

from estimator_core.execution.loops.compiled_step import CompiledSteps

_FEWEST_OPERATIONS = 40
_MOST_PRODUCTS = 100_000_000  # for a batch of the assumed size: about 5 ms on one core
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
    """Returns the reason why a step is not compiled; None if it is.

    `chooses`: True to compile only if it is worthwhile. Otherwise, the step only has to be compilable.
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
        return f"they mostly multiply matrices: {products:.1e} scalar multiplications"
    return None


def _products(step: CompiledSteps, operation: tf.Operation) -> int:
    """Returns the number of scalar multiplications of a MatMul; 0 if a shape is unknown."""
    shapes = [step.parts.shape(each) for each in operation.inputs]
    if not all(shape.is_fully_defined() for shape in shapes):
        return 0
    left, right = (shape.as_list() for shape in shapes)
    rows = left[1] if operation.get_attr("transpose_a") else left[0]
    return rows * math.prod(right) if left and right else 0
