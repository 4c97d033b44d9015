"""Whether it pays to have XLA compile a training step, decided by its operations alone."""

from __future__ import annotations

import math

import tensorflow as tf

from estimator_core.execution.compiled_step import CompiledStep

_FEWEST_OPERATIONS = 40
_SMALLEST_SHARE = 0.5
_MOST_PRODUCTS = 100_000_000  # of a batch of some size: about 5 ms on one core
_MOST_VARIABLE_BYTES = 256 << 20
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


def why_not_compiled(step: CompiledStep, *, chooses: bool) -> str | None:
    """Returns why a step is not compiled; None when it is.

    Args:
        step: The step.
        chooses: Whether it must pay. Otherwise, there must be something to compile.
    """
    compiled = step.operations
    if not compiled:
        return f"{_first_not_compiled(step)} is not for XLA"
    if step.variable_bytes < 0:
        return "the shape of a variable is not known"
    if not chooses:
        return None
    everything = [each for each in step.parts.order if each.name not in step.parts.fixed]
    if len(compiled) < max(_FEWEST_OPERATIONS, _SMALLEST_SHARE * len(everything)):
        return (
            f"only {len(compiled)} of {len(everything)} operations would be compiled; "
            f"{_first_not_compiled(step)} is one that is not"
        )
    for each in everything:
        if each.type.startswith(_HEAVY):
            return f"{each.name!r} ({each.type}) may be slower with it"
    if step.variable_bytes > _MOST_VARIABLE_BYTES:
        return f"the variables take {step.variable_bytes >> 20} MiB"
    products = sum(_products(step, each) for each in everything if each.type == "MatMul")
    if products > _MOST_PRODUCTS:
        return f"matrices are multiplied for the most part, with {products:.1e} products"
    return None


def _first_not_compiled(step: CompiledStep) -> str:
    compiled = {each.name for each in step.operations}
    for each in step.parts.order:
        is_input = each.type in ("IteratorGetNext", "NoOp", "ReadVariableOp", "Identity")
        if each.name not in compiled and each.name not in step.parts.fixed and not is_input:
            return f"{each.name!r} ({each.type})"
    return "the step"


def _products(step: CompiledStep, operation: tf.Operation) -> int:
    """Returns how many products of numbers a MatMul computes."""
    shapes = [step.parts.shape(each) for each in operation.inputs]
    if not all(shape.is_fully_defined() for shape in shapes):
        return 0
    left, right = (shape.as_list() for shape in shapes)
    rows = left[1] if operation.get_attr("transpose_a") else left[0]
    return rows * math.prod(right) if left and right else 0
