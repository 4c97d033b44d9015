"""Metrics that are still a function and the tensors that it takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class MetricFn:
    """What makes the metrics of an evaluation, not called yet.

    The way of running decides where it is called: on each replica, or once with what all shards of a
    batch computed.

    Args:
        function: Returns metrics by name: `(value, update_op)` pairs or Keras metrics.
        tensors: What it takes, `[batch_size, ...]` each: a list for its positional arguments, or a dict
            by name.
    """

    function: Callable[..., Mapping[str, Any]]
    tensors: Sequence[Any] | Mapping[str, Any]

    def __call__(self) -> dict[str, Any]:
        """Returns the metrics, made in the current graph."""
        if isinstance(self.tensors, Mapping):
            return dict(self.function(**self.tensors))
        return dict(self.function(*self.tensors))
