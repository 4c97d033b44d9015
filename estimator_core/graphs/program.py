"""Built graphs that evaluate and predict run again and again, with the session they run in."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Execution, Inputs
from estimator_core.spec.estimator_spec import EstimatorSpec


@dataclasses.dataclass(eq=False)
class Program:
    """A model's graph in one mode, ready to run.

    It is also the `SessionCreator` of its runs. When it keeps its session, a further run restores
    variables only from another checkpoint than the last, and starts metrics and input anew.

    Args:
        execution: How the graph runs.
        graph: The graph.
        spec: What runs.
        inputs: What feeds it.
        fetches: What the mode reads from it.
        fingerprint: That of the input pipeline, or None when the program can't be run again.
        keeps_session: Whether the session stays open between two runs.
    """

    execution: Execution
    graph: tf.Graph
    spec: EstimatorSpec
    inputs: Inputs
    fetches: Any
    fingerprint: bytes | None = None
    keeps_session: bool = False
    checkpoint_path: str | None = None
    _session: Any = None
    _restored: Any = None

    def create_session(self) -> Any:
        """Returns a session with the variables of `checkpoint_path`, initial ones when it is None."""
        state = _state_of(self.checkpoint_path)
        if self._session is None:
            creator = self.execution.session_creator(
                self.spec.scaffold, checkpoint_path=self.checkpoint_path
            )
            session = creator.create_session()
            if not self.keeps_session:
                return session
            self._session, self._close = session, session.close
            session.close = lambda: None  # whoever ran it closes it; here it goes on
        else:
            if state != self._restored:
                self.spec.scaffold.saver.restore(self._session, self.checkpoint_path)
            scaffold = self.spec.scaffold
            self._session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
        self._restored = state
        return self._session

    def release(self) -> None:
        """Closes the session."""
        if self._session is not None:
            self._close()
            self._session = None


class KeptPrograms:
    """The last program of each mode, for as long as its input pipeline is asked for.

    A program that is in use is not in here: two predictions at once have a program each.
    """

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}

    def take(self, mode: str, fingerprint: bytes | None) -> Program | None:
        """Returns the kept program of `mode` if it has this input pipeline, and keeps it no longer."""
        program = self._programs.pop(mode, None)
        if program is not None and fingerprint is not None and program.fingerprint == fingerprint:
            return program
        if program is not None:
            program.release()
        return None

    def give_back(self, mode: str, program: Program) -> None:
        """Keeps a program that has run to its end, in place of the last one."""
        before = self._programs.pop(mode, None)
        if before is not None:
            before.release()
        if program.fingerprint is None:
            program.release()
        else:
            self._programs[mode] = program

    def __deepcopy__(self, memo: Any) -> KeptPrograms:
        """A copy of an Estimator builds its own."""
        return KeptPrograms()

    def clear(self) -> None:
        """Closes all sessions."""
        while self._programs:
            self._programs.popitem()[1].release()


def fingerprint_of(graph: tf.Graph, inputs: Inputs, other: Any = None) -> bytes | None:
    """Returns what tells a program, when only its input is built, from those with another input.

    None when it can't be run twice: queues stay closed once a session has ended.

    Args:
        graph: The graph of the input.
        inputs: What model_fn will receive.
        other: Whatever else makes a difference, with a `repr` that shows it.
    """
    if tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
        return None
    received = (inputs.features, inputs.labels, inputs.replicas)
    structure = tf.nest.map_structure(_tensors_of, received)
    digest = hashlib.sha256(repr((structure, other)).encode())
    definition = graph.as_graph_def()
    functions = {function.signature.name: function for function in definition.library.function}
    names: dict[str, str] = {}  # of the functions, in the order in which they are mentioned
    for node in definition.node:
        digest.update(_with_plain_names(node, names))
    done = 0
    while done < len(names):  # functions mention functions
        mentioned = [functions[name] for name in list(names)[done:] if name in functions]
        done = len(names)
        for function in mentioned:
            function.signature.name = names[function.signature.name]
            for node in function.node_def:
                digest.update(_with_plain_names(node, names))
            del function.node_def[:]
            digest.update(function.SerializeToString(deterministic=True))
    return digest.digest()


# What keeps nothing from one run to the next once metrics and input have started anew.
_FORGETFUL = {
    "Assert",
    "HashTableV2",
    "If",
    "IteratorGetNext",
    "IteratorV2",
    "LookupTableFindV2",
    "PartitionedCall",
    "Placeholder",
    "PrintV2",
    "ReadVariableOp",
    "StatefulPartitionedCall",
    "VarHandleOp",
    "VarIsInitializedOp",
    "While",
}
_REMEMBERING = re.compile(
    "Assign|Generator|Iterator|Multinomial|Normal|PyFunc|Queue|Random|Sampl|Shuffle|Uniform"
)


def forgets_its_runs(graph: tf.Graph, fetches: Any) -> bool:
    """Returns whether a second run in the same session computes what one in a new session would.

    Random numbers go on where they ended, iterators that are not started anew have ended, and
    variables that a run changes stay as they are; local variables and the input do start anew. Files
    of tables are read by a new session only.

    Args:
        graph: The graph of evaluation or prediction.
        fetches: What is read from it.
    """
    if tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS):
        return False
    local = {
        part.handle.name
        for variable in tf1.local_variables()
        for part in (
            variable.values
            if isinstance(variable, tf.distribute.DistributedValues)
            else (variable,)
        )
    }
    pending = [getattr(fetch, "op", fetch) for fetch in tf.nest.flatten(fetches)]
    pending = [operation for operation in pending if isinstance(operation, tf.Operation)]
    reached = set(pending)
    while pending:
        operation = pending.pop()
        if operation.type.startswith("Assign"):
            if operation.inputs[0].name not in local:
                return False
        elif operation.op_def.is_stateful and operation.type not in _FORGETFUL:
            return False
        for source in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if source not in reached:
                reached.add(source)
                pending.append(source)
    definition = graph.as_graph_def()
    nodes = [node for function in definition.library.function for node in function.node_def]
    datasets = [node for node in definition.node if "Dataset" in node.op]
    return not any(_REMEMBERING.search(node.op) for node in (*nodes, *datasets))


def _tensors_of(value: Any) -> Any:
    """Returns names, types and static shapes of the tensors that `value` is made of."""
    parts = tf.nest.flatten(value, expand_composites=True)
    described = [
        (part.name, part.dtype, part.shape) if tf.is_tensor(part) else part for part in parts
    ]
    return f"{type(value).__name__}{described}"


def _with_plain_names(node: Any, names: dict[str, str]) -> bytes:
    """Returns the node, naming functions by their order of mention: TensorFlow counts per process.

    Args:
        node: `NodeDef`, which is changed.
        names: Function to its plain name; gains those that are mentioned for the first time.
    """

    def plain(name: str) -> str:
        stem = re.sub(r"^(__inference_.*)_\d+$", r"\1", name)
        return names.setdefault(name, name if stem == name else f"{stem}#{len(names)}")

    node.op = plain(node.op)
    for attribute in node.attr.values():
        if attribute.HasField("func"):
            attribute.func.name = plain(attribute.func.name)
        for function in attribute.list.func:
            function.name = plain(function.name)
    return node.SerializeToString(deterministic=True)


def _state_of(checkpoint_path: str | None) -> Any:
    """Returns what changes when other variables are at a checkpoint's path.

    The index file has the checksum of every tensor.
    """
    if checkpoint_path is None:
        return None
    index = f"{checkpoint_path}.index"
    if not tf.io.gfile.exists(index):
        return checkpoint_path
    with tf.io.gfile.GFile(index, "rb") as file:
        return checkpoint_path, hashlib.sha256(file.read()).digest()
