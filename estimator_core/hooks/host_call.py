"""Host calls: operations that the host runs with training steps, on tensors of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1

_WRITERS = ("CreateSummaryDbWriter", "CreateSummaryFileWriter")


class HostCallHook(tf1.train.SessionRunHook):
    """Runs the tensors and operations that a host call returned.

    The graph's `tf.summary` writers are opened before training and flushed at the end.

    `function`: function that returns tensors and operations in any structure; None in it is left out.
    `tensors`: arguments of the function: a list of positional arguments, or a dict by name.
    """

    def __init__(
        self, function: Callable[..., Any], tensors: Sequence[Any] | Mapping[str, Any], every_n_steps: int = 1
    ):
        self._function = function
        self.tensors = tensors
        self._every_n_steps = every_n_steps
        self._fetches: list[Any] = []
        self._steps = 0

    def call(self, tensors: Sequence[Any] | Mapping[str, Any]) -> HostCallHook:
        """Calls the function, in the graph; returns the hook."""
        result = self._function(**tensors) if isinstance(tensors, Mapping) else self._function(*tensors)
        self._fetches = [value for value in tf.nest.flatten(result) if value is not None]
        for value in self._fetches:
            if not (tf.is_tensor(value) or isinstance(value, tf.Operation)):
                raise TypeError(
                    "The function of host_call must return tensors or operations, in any structure. "
                    f"Received: {value!r}"
                )
        return self

    def begin(self) -> None:
        """Finds the summary writers while the graph can still be changed."""
        operations = tf1.get_default_graph().get_operations()
        self._open = [operation for operation in operations if operation.type in _WRITERS]
        self._flush = [tf.raw_ops.FlushSummaryWriter(writer=operation.inputs[0]) for operation in self._open]
        self._steps = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        session.run(self._open)

    def before_run(self, run_context: Any) -> Any:
        """Fetches the host call's values when they are due."""
        del run_context
        return tf1.train.SessionRunArgs(self.next_fetches())

    def next_fetches(self) -> list[Any]:
        """Returns the fetches of the host call in the next step: an empty list when it is not due."""
        self._steps += 1
        return self._fetches if (self._steps - 1) % self._every_n_steps == 0 else []

    def end(self, session: Any) -> None:
        session.run(self._flush)
