"""Metrics as a function that is not called yet, with its tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class MetricFn:
    """A function that makes the metrics of an evaluation, and its arguments.

    The execution decides where to call it: on each replica, or once with the tensors of all shards of a
    batch.

    `function`: function that returns metrics by name: `(value, update_op)` pairs or Keras metrics.
    `tensors`: arguments of the function, `[batch_size, ...]` each: a list of positional ones, or a dict by
    name.
    """

    function: Callable[..., Mapping[str, Any]]
    tensors: Sequence[Any] | Mapping[str, Any]

    def __call__(self) -> dict[str, Any]:
        """Returns the metrics, made in the current graph."""
        if isinstance(self.tensors, Mapping):
            return dict(self.function(**self.tensors))
        return dict(self.function(*self.tensors))
