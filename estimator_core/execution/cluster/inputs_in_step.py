"""The input of a worker that trains in step with others: all inputs end when the first one ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.cluster.collectives import INPUTS, Peers, Watch
from estimator_core.execution.inputs import Inputs, IteratorInitializerHook, features_and_labels
from estimator_core.logs import logger

_UPDATE_PREFIXES = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply")
_COLLECTIVE_PREFIX = "CollectiveReduce"
_HAS_BATCHES, _INPUT_ENDED, _STOPS = range(3)


class InputsInStep(Inputs):
    """An iterator in the graph of each task, which gives a step's batches to all tasks or to none.

    Before each step, the tasks tell each other whether they take part in it. If one does not, the step
    ends in all tasks with an OutOfRangeError that gives the reason.
    """

    def __init__(self, dataset: tf.data.Dataset, mode: str, peers: Peers, watch: Watch):
        features_and_labels(dataset.element_spec, mode)
        iterator = tf1.data.make_initializable_iterator(dataset)
        self._iterator = iterator
        self._peers = peers
        self._states: list[int] = []  # of all tasks, once one does not take part in a step
        self.train_op: Any = None
        self.batches: list[tf.Operation] = []  # the operations that give the batches
        with tf1.device(peers.device):
            self._stops = tf1.placeholder_with_default(False, [])
        hooks = [IteratorInitializerHook(iterator), _EndTogether(self, watch)]
        super().__init__(iterator.get_next, mode, hooks)

    @property
    def is_at_end(self) -> bool:
        """True if the input of any task has ended."""
        return _INPUT_ENDED in self._states

    def next_batches(self, count: int) -> list[tuple[Any, Any]]:
        """Returns `count` batches, in order, for a step that all tasks take part in."""
        with tf1.device(self._peers.device):
            elements: list[Any] = []
            has_batch: list[Any] = []
            for _ in range(count):
                with tf.control_dependencies(has_batch):
                    elements.append(tf.data.experimental.get_next_as_optional(self._iterator))
                has_batch.append(elements[-1].has_value())
            ended = tf.where(tf.reduce_all(has_batch), _HAS_BATCHES, _INPUT_ENDED)
            own = tf.where(self._stops, _STOPS, ended)
            states = self._peers.concat(own[tf.newaxis], INPUTS)
            all_take_part = tf.numpy_function(self._check, [states], tf.int32)
            with tf.control_dependencies([all_take_part]):
                values = [element.get_value() for element in elements]
        self.batches = [tensor.op for tensor in tf.nest.flatten(values, expand_composites=True)]
        return [features_and_labels(value, self._mode) for value in values]

    def _check(self, states: Any) -> Any:
        """Ends the step unless all tasks take part: TensorFlow turns StopIteration into OutOfRangeError."""
        if states.any():
            self._states = states.tolist()
            raise StopIteration(self._why())
        return states

    def _why(self) -> str:
        ended, stopping = (
            [str(task) for task, state in zip(self._peers.tasks, self._states, strict=True) if state == kind]
            for kind in (_INPUT_ENDED, _STOPS)
        )
        reasons = [f"the input of {', '.join(ended)} has ended"] if ended else []
        if stopping:
            reasons.append(f"{', '.join(stopping)} stopped")
        return f"Training ends in all tasks: {', and '.join(reasons)}."

    # For the hook

    def begin(self) -> None:
        """Resets the states for a new session."""
        self._states = []

    def end(self, session: Any) -> None:
        """Tells the other tasks that this task makes no further step, unless training has ended already."""
        if not self._states:
            with contextlib.suppress(tf.errors.OutOfRangeError):
                session.run(self.train_op, {self._stops: True})
        if set(self._states) != {_STOPS}:
            logger.info(self._why())


class _EndTogether(tf1.train.SessionRunHook):
    """Ends the training of all tasks together, and has its session watched."""

    def __init__(self, inputs: InputsInStep, watch: Watch):
        self._inputs = inputs
        self._watch = watch

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        self._inputs.begin()
        self._watch.session = session

    def end(self, session: Any) -> None:
        """Ends the training; no step comes after this, but the chief still saves a checkpoint."""
        self._inputs.end(session)
        self._watch.session = None


def changed_by_batches(
    variables: Iterable[Any], components: Callable[[Any], Sequence[Any]], batches: Iterable[tf.Operation]
) -> list[Any]:
    """Returns the floating-point variables that are updated from a batch without a sum over the tasks.

    An optimizer's updates do not count, as they use gradients summed over the tasks. Updates within
    `tf.cond` and loops are not found.
    """
    graph_operations = list(batches)
    if not graph_operations:
        return []
    graph = graph_operations[0].graph
    sums = [
        operation for operation in graph.get_operations() if operation.type.startswith(_COLLECTIVE_PREFIX)
    ]
    from_batches, from_sums = _descendants(graph_operations), _descendants(sums)
    updated = {
        operation.inputs[0].name
        for operation in from_batches - from_sums
        if operation.type.startswith(_UPDATE_PREFIXES)
    }
    return [
        variable
        for variable in variables
        if variable.dtype.is_floating
        and any(part.op.outputs[0].name in updated for part in components(variable))
    ]


def _descendants(operations: Iterable[tf.Operation]) -> set[tf.Operation]:
    """Returns the operations and all operations that use their values, directly or indirectly."""
    descendants = set(operations)
    pending = list(descendants)
    while pending:
        for tensor in pending.pop().outputs:
            for operation in tensor.consumers():
                if operation not in descendants:
                    descendants.add(operation)
                    pending.append(operation)
    return descendants
