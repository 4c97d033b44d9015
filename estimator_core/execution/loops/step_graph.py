"""The operations of a training step, and copies of them for a loop in the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.loops.small_adam_updates import divides_too_much, small_adam_update

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_CONTROL_FLOW = (
    "Enter",
    "Exit",
    "LoopCond",
    "Merge",
    "NextIteration",
    "RefEnter",
    "RefExit",
    "RefMerge",
    "RefNextIteration",
    "RefSwitch",
    "Switch",
)
# Operations that raise an error at the end of the input.
NEXT_BATCH = ("IteratorGetNext", "IteratorGetNextSync")
# Operations that read a resource and change nothing.
_READS = (
    "LookupTableExportV2",
    "LookupTableFindV2",
    "LookupTableSizeV2",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarIsInitializedOp",
    "VariableShape",
)
# Operations whose state is in a resource that the graph has once, and that all copies share.
_ON_RESOURCES = (
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "AssignVariableXlaConcatND",
    "DisableCopyOnRead",
    "IteratorGetNext",
    "IteratorGetNextAsOptional",
    "IteratorGetNextSync",
    "LookupTableExportV2",
    "LookupTableFindV2",
    "LookupTableInsertV2",
    "LookupTableRemoveV2",
    "LookupTableSizeV2",
    "ReadVariableOp",
    "RngReadAndSkip",
    "RngSkip",
    "StatefulRandomBinomial",
    "StatefulStandardNormalV2",
    "StatefulTruncatedNormal",
    "StatefulUniform",
    "StatefulUniformFullInt",
    "StatefulUniformInt",
    "VarIsInitializedOp",
    "VariableShape",
)
_ON_RESOURCES_PREFIXES = (
    "ResourceApply",
    "ResourceCountUpTo",
    "ResourceGather",
    "ResourceScatter",
    "ResourceSparseApply",
    "ResourceStridedSliceAssign",
)
# Operations that have an effect, but keep no state.
_WITHOUT_STATE = (
    "Assert",
    "Case",
    "If",
    "PartitionedCall",
    "PrintV2",
    "StatefulPartitionedCall",
    "Timestamp",
    "While",
)
_HANDLES = (
    "AnonymousHashTable",
    "HashTableV2",
    "IteratorV2",
    "MutableDenseHashTableV2",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
    "OneShotIterator",
    "VarHandleOp",
)
_MOST_OPERATIONS = 5000  # a larger step takes long enough for its own session call
_MOST_BYTES = 100 << 20
_FIRST_REF = 100  # larger numbers in TensorFlow's enumeration of types are references


class StepGraph:
    """The operations that a training step runs."""

    def __init__(self, targets: Sequence[tf.Operation]):
        self._graph = targets[0].graph
        needed = _upstream(targets)
        in_order = [operation for operation in self._graph.get_operations() if operation in needed]
        self.operations = [operation for operation in in_order if not _stays_outside(operation)]
        self.outside = [operation for operation in in_order if _stays_outside(operation)]
        self._graph_def = self._graph.as_graph_def()
        self._batches = [operation for operation in self.operations if operation.type in NEXT_BATCH]

    def why_not_copied(self) -> str | None:
        """Returns the reason why a copy would behave differently or not be worthwhile; None if it is fine."""
        if len(self.operations) > _MOST_OPERATIONS or self._graph_def.ByteSize() > _MOST_BYTES:
            return (
                f"a copy of {len(self.operations)} operations, of a graph of "
                f"{self._graph_def.ByteSize() >> 20} MiB, would cost more than it saves"
            )
        for operation in self.operations:
            if is_of_tensorflow_1(operation):
                kind = "is a variable of TensorFlow 1 (use_resource=False)"
                if operation.type in _CONTROL_FLOW:
                    kind = "belongs to a loop or condition of TensorFlow 1"
                return f"{operation.name!r} {kind}"
            has_state = operation.op_def is not None and operation.op_def.is_stateful
            reason = _why_not(operation.name, operation.node_def, has_state)
            if reason:
                return reason
        reason = self._why_not_functions()
        # A loop over several devices may read ahead and skip batches.
        devices = sorted({operation.device for operation in self.operations if operation.device})
        if reason is None and len(devices) > 1:
            reason = f"they are on several devices: {', '.join(devices)}"
        return reason

    @property
    def functions(self) -> dict[str, Any]:
        """`FunctionDef` of each function of the graph, by name."""
        return {function.signature.name: function for function in self._graph_def.library.function}

    def subgraph_def(self, names: set[str], *, with_outside: bool = False) -> Any:
        """Returns a `GraphDef` of some of the operations, with all functions.

        Control inputs from other operations are left out. As in a `copy`, operations that change something
        wait for the next batch, if that is included.
        """
        within = names | {operation.name for operation in self.outside} if with_outside else names
        graph_def = tf1.GraphDef(node=self._nodes(within))
        graph_def.versions.CopyFrom(self._graph_def.versions)
        graph_def.library.CopyFrom(self._graph_def.library)
        return graph_def

    def operation(self, name: str) -> tf.Operation:
        return self._graph.get_operation_by_name(name)

    def _why_not_functions(self) -> str | None:
        functions = self.functions
        pending = [name for operation in self.operations for name in _called(operation.node_def, functions)]
        reached = set(pending)
        while pending:
            name = pending.pop()
            for node in functions[name].node_def:
                has_state = node.op not in functions and self._graph.op_def_for_type(node.op).is_stateful
                reason = _why_not(f"{name}/{node.name}", node, has_state)
                if reason:
                    return reason
                new = set(_called(node, functions)) - reached
                reached |= new
                pending += new
        return None

    def copy(self, wanted: Sequence[Any]) -> list[Any]:
        """Copies the step into the default graph; returns the copies of operations and tensors.

        The default graph is the graph of the step, or the body of a loop in it. In the copy, all operations
        that change something wait for the next batch: a step that finds the end of the input changes nothing.
        """
        return self._copied(self._step_nodes(), [target.name for target in wanted])

    @property
    def has_one_iterator(self) -> bool:
        """True if a step takes its batch from exactly one iterator, which a `timed_copy` needs."""
        return len(self._batches) == 1

    def timed_copy(self, wanted: Sequence[Any]) -> tuple[list[Any], tf.Tensor]:
        """Returns the copies, and the seconds that they wait for the next batch, as a float64 scalar.

        All operations except those that produce the batch wait for it, so their time is not counted and the
        thread that requests the batch runs none of them.
        """
        nodes = self._step_nodes()
        (batch,) = (node for node in nodes if node.op in NEXT_BATCH)
        names = [self._graph.unique_name(f"batch_{when}", False) for when in ("wanted", "there")]
        begin, end = (tf1.NodeDef(name=name, op="Timestamp", device=batch.device) for name in names)
        end.input.append(f"^{batch.name}")
        made = {node.name for node in nodes}
        earlier = {operation.name for operation in _upstream([self.operation(batch.name)])}
        for node in nodes:
            sources = {name.split(":")[0] for name in node.input if name[0] != "^"}
            if node.name not in earlier and (batch.name in sources or not sources & made):
                node.input.append(f"^{end.name}")
        batch.input.append(f"^{begin.name}")
        fetches = [target.name for target in wanted]
        fetches += [f"{begin.name}:0", f"{end.name}:0"]
        *copies, start, stop = self._copied([*nodes, begin, end], fetches)
        return copies, stop - start

    def _step_nodes(self) -> list[Any]:
        """Returns the `NodeDef`s of the copy of a step."""
        replaced = {operation.name for operation in self.operations if divides_too_much(operation)}
        nodes: list[Any] = []
        for node in self._nodes({operation.name for operation in self.operations}):
            nodes += small_adam_update(node) if node.name in replaced else [node]
        return nodes

    def _nodes(self, within: set[str]) -> list[Any]:
        """Returns the `NodeDef`s of the operations with these names."""
        waiting = self.waiting()
        batches = [f"^{batch.name}" for batch in self._batches if batch.name in within]
        nodes = []
        for node_def in self._graph_def.node:
            if node_def.name not in within:
                continue
            node = tf1.NodeDef()
            node.CopyFrom(node_def)
            node.attr.pop("_class", None)  # it may name an operation that is not copied
            inputs = [name for name in node.input if name[0] != "^" or name[1:] in within]
            del node.input[:]
            if node_def.name in waiting:
                inputs += [batch for batch in batches if batch not in inputs]
            node.input.extend(inputs)
            nodes.append(node)
        return nodes

    def _copied(self, nodes: Sequence[Any], fetches: Sequence[str]) -> list[Any]:
        """Imports the nodes into the default graph; returns the fetched operations and tensors."""
        body = tf1.get_default_graph()
        capture = getattr(body, "capture", None)
        graph_def = tf1.GraphDef(node=nodes)
        graph_def.versions.CopyFrom(self._graph_def.versions)
        if capture:
            graph_def.library.CopyFrom(self._graph_def.library)
        within = {operation.name for operation in self.operations}
        # Outside operations that a step depends on have run before the loop begins.
        taken = {
            tensor.name: capture(tensor) if capture else tensor
            for operation in self.outside
            for tensor in operation.outputs
            if any(consumer.name in within for consumer in tensor.consumers())
        }
        return tf.graph_util.import_graph_def(graph_def, taken, return_elements=list(fetches), name="step")

    def waiting(self) -> set[str]:
        """Returns the names of operations that change something and are not needed for the batches."""
        earlier = _upstream(self._batches)
        return {
            operation.name
            for operation in self.operations
            if operation not in earlier and _changes(operation)
        }


def _upstream(targets: Iterable[tf.Operation]) -> set[tf.Operation]:
    """Returns the targets and all operations they need, without those that outside operations need."""
    needed: set[tf.Operation] = set()
    pending = list(targets)
    while pending:
        operation = pending.pop()
        if operation not in needed:
            needed.add(operation)
            if not _stays_outside(operation):
                pending += [tensor.op for tensor in operation.inputs]
                pending += operation.control_inputs
    return needed


def _changes(operation: tf.Operation) -> bool:
    """Returns whether an operation may change a variable or another state; one without inputs can't."""
    definition = operation.op_def
    is_stateful = definition is not None and definition.is_stateful
    return is_stateful and operation.type not in _READS and bool(operation.inputs)


def is_of_tensorflow_1(operation: tf.Operation) -> bool:
    """Returns whether it belongs to a TensorFlow 1 loop or condition, or to a reference variable."""
    return operation.type in _CONTROL_FLOW or any(
        tensor.dtype.as_datatype_enum > _FIRST_REF for tensor in operation.outputs
    )


def _stays_outside(operation: tf.Operation) -> bool:
    is_handle = operation.type in _HANDLES and not operation.inputs
    return is_handle or operation.type in _PLACEHOLDERS


def _why_not(name: str, node: Any, has_state: bool) -> str | None:
    """Returns the reason why a copy of a node would behave differently; None if it would not."""
    if not has_state or node.op in _WITHOUT_STATE or node.op in _ON_RESOURCES:
        return None
    if node.op.startswith(_ON_RESOURCES_PREFIXES):
        return None
    if node.op == "Print" and node.attr["first_n"].i < 0:
        return None
    if "seed" in node.attr and "seed2" in node.attr:
        if not (node.attr["seed"].i or node.attr["seed2"].i):
            return None  # without a seed, it draws other numbers each time anyway
        return f"{name!r} ({node.op}) draws random numbers in the order of its seed"
    return f"{name!r} ({node.op}) may keep its own state"


def _called(node: Any, functions: Mapping[str, Any]) -> Iterator[str]:
    if node.op in functions:
        yield node.op
    for value in node.attr.values():
        for function in [value.func] if value.HasField("func") else value.list.func:
            if function.name in functions:
                yield function.name
