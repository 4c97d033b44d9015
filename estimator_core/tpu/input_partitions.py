"""Checks of `TPUConfig.input_partition_dims`, which splits inputs over the cores of one copy of the model.

Virtual shards don't split their input, which gives the same numbers. They only check that a TPU
would accept the dims.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.execution.inputs import features_and_labels
from estimator_core.spec.calling import arg_names
from estimator_core.tpu.user_functions import with_arguments


def input_fn_with_partitions(
    input_fn: Callable[..., Any], dims: Sequence[Any], num_cores: int, mode: str
) -> Callable[..., Any]:
    """Returns an input_fn that checks that a TPU could split the batches of `input_fn`.

    `input_fn`: function that returns a `tf.data.Dataset`, or features and labels.
    `mode`: one of `ModeKeys`; for prediction the labels are left out.
    """

    def call(**arguments: Any) -> Any:
        result = input_fn(**arguments)
        batch = result.element_spec if isinstance(result, tf.data.Dataset) else result
        features, labels = features_and_labels(batch, mode)
        if dims[0] is None:
            raise ValueError(
                "input_partition_dims[0] must give the dims of features; None is only for labels. "
                f"Received: input_partition_dims={dims!r}"
            )
        _check(features, dims[0], num_cores, "features", "input_partition_dims[0]")
        if labels is not None and len(dims) > 1 and dims[1] is not None:
            _check(labels, dims[1], num_cores, "labels", "input_partition_dims[1]")
        return result

    return with_arguments(call, arg_names(input_fn))


def _check(batch: Any, dims: Any, num_cores: int, what: str, name: str) -> None:
    for where, tensor, of_tensor in _paired(batch, dims, what, name):
        if of_tensor is None:
            continue
        if not isinstance(of_tensor, (list, tuple)) or not all(
            isinstance(value, numbers.Integral) and int(value) >= 1 for value in of_tensor
        ):
            raise ValueError(
                f"{name} must have a list of whole numbers above 0, or None, for {where}. "
                f"Received: {of_tensor!r}"
            )
        parts = math.prod(of_tensor)
        if parts == 1:
            continue
        if parts != num_cores:
            raise ValueError(
                f"{name} must make as many parts as a copy of the model has cores. Received: {of_tensor} "
                f"for {where}, which makes {parts}, and num_cores_per_replica={num_cores}"
            )
        if tensor.shape.rank is not None and len(of_tensor) != tensor.shape.rank:
            raise ValueError(
                f"{name} must have a number for each dimension. Received: {of_tensor} for {where} of shape "
                f"{tensor.shape}"
            )


def _paired(batch: Any, dims: Any, where: str, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yields the name of each tensor, the tensor, and its dims."""
    parts, of_parts = _parts(batch), _parts(dims)
    if parts is None:
        yield where, batch, dims
        return
    if of_parts is None or of_parts.keys() != parts.keys():
        raise ValueError(
            f"{name} must have the structure of {where}, with the keys {sorted(parts)}. Received: {dims!r}"
        )
    for key, part in parts.items():
        yield from _paired(part, of_parts[key], f"{where}[{key!r}]", name)


def _parts(structure: Any) -> Mapping[Any, Any] | None:
    """Returns the parts of a structure by key; None for a single tensor."""
    if isinstance(structure, (list, tuple)):
        return dict(enumerate(structure))
    return structure if isinstance(structure, Mapping) else None
