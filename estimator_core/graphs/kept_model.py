"""Repeated small predictions by a premade model whose graph is kept between calls of `predict`.

Building a premade model takes fifty times as long as predicting one example. Its graph is kept from one call
of `predict` to the next if it is certain that building it again would give the same graph: see
`spec.settled`. input_fn is called each time, in a separate graph.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.whole import size_and_time
from estimator_core.execution.base import Execution
from estimator_core.execution.inputs import IteratorInitializerHook
from estimator_core.execution.loops.effects import stateful_operations
from estimator_core.execution.single_device import SingleDevice
from estimator_core.graphs.build import BuiltInputs, Model, build_for_features, build_over
from estimator_core.graphs.program import Program
from estimator_core.graphs.restoring import check_checkpoint
from estimator_core.spec.mode_keys import ModeKeys

_MOST_BATCHES = 4  # with more batches, a graph that includes the input is faster
_BATCHES_UNTIL_BUILT = 200  # batches of a call after which building such a graph has paid off
_MOST_BYTES = 64 << 20  # of weights that stay in memory
# An input with one of these needs more than its iterator initialized.
_STATE = (
    tf1.GraphKeys.LOCAL_VARIABLES,
    tf1.GraphKeys.QUEUE_RUNNERS,
    tf1.GraphKeys.RESOURCES,
    tf1.GraphKeys.TABLE_INITIALIZERS,
)
_TABLES_OF_CONSTANTS = ("InitializeTableV2", "LookupTableImportV2")  # a file's table may change


@dataclasses.dataclass(frozen=True)
class KeptModel:
    """A model over fed features, in a session."""

    key: Any  # Key of the calls that the model can answer; see `PredictCall`
    placeholders: list[tf.Tensor]
    predictions: dict[str, tf.Tensor]
    # Session with the weights of one checkpoint; a later checkpoint gets another session.
    session: Any


@dataclasses.dataclass
class _Calls:
    """The earlier calls of `predict` on one Estimator."""

    key: Any = None  # Key of the last completed call; None if no model can be kept for it
    batches: int = 0
    kept: KeptModel | None = None  # The kept model, if there is one
    refused: Any = None  # Key of a model that turned out to be impossible to keep


_calls_of: weakref.WeakKeyDictionary[Any, _Calls] = weakref.WeakKeyDictionary()


class PredictCall:
    """One call of `predict`: finds a kept model that can answer it, and yields the predictions.

    `checkpoint_path`: the checkpoint to predict with; None when there is none.
    """

    def __init__(
        self, owner: Any, model: Model, execution: Execution, built: BuiltInputs, checkpoint_path: str | None
    ):
        self._model, self._execution, self._built = model, execution, built
        self._checkpoint_path = checkpoint_path or ""
        self._features: Any = None
        self._calls = _Calls()
        self._key = self._key_of_call()
        if self._key is not None:
            self._calls = _calls_of.setdefault(owner, self._calls)

    def _key_of_call(self) -> Any:
        """Returns everything that the answers depend on but the features' values; None if not known."""
        config = self._model.config
        is_plain = type(self._execution) is SingleDevice and not config.master
        fingerprint = self._model.fingerprint() if is_plain else None
        stamp = _stamp(self._checkpoint_path)
        if fingerprint is None or stamp is None or config.device_fn or tf.distribute.has_strategy():
            return None
        hooks = self._built.inputs.hooks
        with self._built.graph.as_default():
            has_state = any(tf1.get_collection(name) for name in _STATE)
            has_state = has_state or len(tf1.global_variables()) > 1  # more than the global step
            if has_state or any(type(hook) is not IteratorInitializerHook for hook in hooks):
                return None
            self._features, _ = self._built.inputs.next_batch()
        settings = config.session_config and config.session_config.SerializeToString()
        specs = _specs(self._features)
        if specs is None:
            return None
        return (stamp, specs, settings, *_process_state(), fingerprint)

    def find(self) -> KeptModel | None:
        """Returns the kept model if the previous call had the same key and few batches; otherwise None."""
        calls = self._calls
        if self._key is None or calls.key != self._key or calls.batches > _MOST_BATCHES:
            return None
        if calls.kept is None or calls.kept.key != self._key:
            if calls.refused == self._key:
                return None
            calls.kept = self._made()
            calls.refused = None if calls.kept else self._key
        return calls.kept

    def counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yields the batches, and records their number at the end."""
        count = 0
        try:
            for batch in batches:
                count += 1
                yield batch
        finally:
            self._calls.key, self._calls.batches = self._key, count

    def _made(self) -> KeptModel | None:
        program, placeholders = build_for_features(self._model, self._execution, self._features)
        path = self._checkpoint_path
        with program.scope():
            if not _can_be_kept(program):
                return None
            check_checkpoint(program.spec, path)
            session = program.restored_session(path)
        stamp, *_ = self._key
        if session is None or _stamp(path) != stamp:
            return None
        return KeptModel(self._key, placeholders, program.spec.predictions, session)

    def batches(self, kept: KeptModel, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields predictions by name to the end of the input, batch by batch.

        After 200 batches, the model is built again in the input's graph, if it would be the same model.
        """
        graph, inputs = self._built
        with graph.as_default():
            for hook in inputs.hooks:
                hook.begin()
        session = tf1.Session(graph=graph, config=self._model.config.session_config)
        try:
            for hook in inputs.hooks:
                hook.after_create_session(session, None)
            next_batch = self._by_feeding(kept, session, names)
            for count in itertools.count():
                if count == _BATCHES_UNTIL_BUILT:
                    # Would building the model now give the kept one?
                    *_, tensorflow_state, process_state, fingerprint = self._key
                    is_same = (tensorflow_state, process_state) == _process_state()
                    if is_same and self._model.fingerprint() == fingerprint:
                        next_batch = self._with_input(kept, session, names)
                try:
                    values = next_batch()
                except (tf.errors.OutOfRangeError, StopIteration):
                    return
                yield dict(zip(names, values, strict=True))
        finally:
            session.close()

    # `_do_call` handles errors like `session.run`: they name the operation and the line that created it.

    def _by_feeding(self, kept: KeptModel, session: Any, names: Sequence[str]) -> Callable[[], list[Any]]:
        """Returns a function that reads a batch in the input's session and feeds it to the kept model."""
        read = session.make_callable(tf.nest.flatten(self._features, expand_composites=True))
        fetches = [kept.predictions[name] for name in names]

        def run() -> list[Any]:
            values = session._do_call(read)  # noqa: SLF001
            return kept.session.run(fetches, dict(zip(kept.placeholders, values, strict=True)))

        return run

    def _with_input(self, kept: KeptModel, session: Any, names: Sequence[str]) -> Callable[[], list[Any]]:
        """Returns a function that computes the predictions of a batch in the input's session.

        The model is built in the input's graph, with the weights of the kept one.
        """
        program = build_over(
            self._built, self._model, self._execution, ModeKeys.PREDICT, starts_from_checkpoint=True
        )
        of_kept = kept.session.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
        weights = kept.session.run({variable.op.name: variable for variable in of_kept})
        with program.scope():
            variables = tf1.global_variables()
            feeds = {variable.initializer.inputs[1]: weights[variable.op.name] for variable in variables}
            session.run([variable.initializer for variable in variables], feeds)
            session.run(tf1.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS))
            run = session.make_callable([program.spec.predictions[name] for name in names])
        return lambda: session._do_call(run)  # noqa: SLF001


def _process_state() -> tuple[Any, Any]:
    """Returns TensorFlow's graph-building switches and the process id: a session does not survive a fork."""
    return (tf1.control_flow_v2_enabled(), tf1.executing_eagerly_outside_functions()), os.getpid()


def _stamp(checkpoint_path: str) -> Any:
    """Returns a value that changes when another checkpoint is written to the path; None if not known."""
    try:
        size, written = size_and_time(f"{checkpoint_path}.index")
    except (tf.errors.OpError, OSError):  # no checkpoint
        return None
    # A file system without modification times, such as ram://, can't tell two checkpoints of a size apart.
    return (checkpoint_path, written, size) if written else None


def _specs(features: Any) -> Any:
    """Returns the names, kinds, types and shapes of the features, in order; None if they can't be fed."""
    if type(features) is not dict:
        return None
    specs = []
    for name, value in features.items():
        if isinstance(value, (dict, list, tuple)) or not tf.is_tensor(value):
            return None
        parts = tf.nest.flatten(value, expand_composites=True)
        if any(part.dtype in (tf.variant, tf.resource) for part in parts):
            return None
        specs.append((name, type(value), [(part.dtype, str(part.shape)) for part in parts]))
    return specs


def _can_be_kept(program: Program) -> bool:
    """Returns whether the model always gives the same predictions for the same features."""
    predictions = program.spec.predictions
    variables = tf1.global_variables()
    size = sum((variable.shape.num_elements() or 0) * variable.dtype.size for variable in variables)
    tables = tf1.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
    return (
        isinstance(predictions, dict)
        and size <= _MOST_BYTES
        and not program.spec.prediction_hooks
        and not tf1.local_variables()
        and all(table.type in _TABLES_OF_CONSTANTS for table in tables)
        and not any(stateful_operations(table.inputs[1:]) for table in tables)
        and all(
            getattr(effect, "type", None) == "Assert"
            for effect in stateful_operations(list(predictions.values()))
        )
    )
