"""Copying the graph of one shard's model for the other shards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.shards.updates import (
    called_functions,
    find_updated_handles,
    is_call,
    is_handle,
    is_update,
)

_BATCH_NORM = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_OF_SHAPES = ("OnesLike", "Rank", "Shape", "ShapeN", "Size", "VariableShape", "ZerosLike")
_LOOPS = ("Enter", "RefEnter")
_SEED = "seed2"
_SEED_STEP = 1_000_003  # a prime, so that seeds close together don't coincide in other shards
_MOST_SEEDS = 2**31


class ModelGraph:
    """The operations of one shard's model, of which other shards get copies.

    Operations that depend on the batch are copied, and so are operations that draw random numbers, with a
    different seed for each shard. All others are shared by the shards: variables, their updates, and
    operations that depend only on variables. A copy that runs after an update waits for the shared update.

    `updates_once`: True if variables are updated only for the first shard. Otherwise each shard has copies
    of the updates.
    """

    def __init__(
        self,
        operations: Sequence[tf.Operation],
        entries: Sequence[tf.Tensor],
        sums: Collection[tf.Operation],
        updates_once: bool,
    ):
        self._order = {operation: index for index, operation in enumerate(operations)}
        self._entries = [tensor.op for tensor in entries]
        self._sums = frozenset(sums)
        self._updates_once = updates_once
        self._users: dict[tf.Operation, list[tf.Operation]] = {}
        for operation in operations:
            for source in sources(operation):
                self._users.setdefault(source, []).append(operation)

    def to_copy(self, needed: Iterable[tf.Operation]) -> list[tf.Operation]:
        """Returns the operations to copy for every shard to have its own `needed`."""
        wanted: set[tf.Operation] = set()
        pending = [operation for operation in needed if self._is_inside(operation)]
        while pending:
            operation = pending.pop()
            if operation not in wanted:
                wanted.add(operation)
                pending += [source for source in sources(operation) if self._is_inside(source)]
        own = [operation for operation in wanted if _draws_random_numbers(operation)]
        own += users_of_updated(wanted)  # each shard reads the updates of the previous one
        copied = set(own)
        pending = [*self._entries, *own]
        while pending:
            for user in self._users.get(pending.pop(), ()):
                if user in wanted and user not in copied:
                    copied.add(user)
                    pending.append(user)
        return sorted(copied, key=self._order.__getitem__)

    def _is_inside(self, operation: tf.Operation) -> bool:
        """Returns whether an operation belongs to the model and may differ between shards."""
        is_common = operation in self._sums or (self._updates_once and is_update(operation))
        return operation in self._order and not is_common

    def in_step(self, fetches: Iterable[tf.Operation]) -> set[tf.Operation]:
        """Returns the operations of the model that run when the fetches of a step run."""
        operations: set[tf.Operation] = set()
        pending = list(fetches)
        while pending:
            operation = pending.pop()
            if operation in self._order and operation not in operations:
                operations.add(operation)
                pending += sources(operation)
        return operations

    def read_again(
        self,
        variables: Iterable[Any],
        trainable: Iterable[Any],
        copied: Collection[tf.Operation],
        in_step: Collection[tf.Operation],
    ) -> list[str]:
        """Returns the names of variables that keep a value of one shard for a later step.

        Only variables count that a sum over shards, or an update of a trainable variable, depends on.
        """
        variable_names = set(self.updates_by_one_shard(variables, copied, in_step))
        weights = {_handle(variable).op for variable in trainable}
        names = []
        for variable in variables:
            if variable.name not in variable_names:
                continue
            if any(
                operation in self._sums
                or (is_update(operation) and any(tensor.op in weights for tensor in operation.inputs))
                for operation in _dependents(_handle(variable), in_step)
            ):
                names.append(variable.name)
        return names

    def updates_by_one_shard(
        self, variables: Iterable[Any], copied: Collection[tf.Operation], in_step: Collection[tf.Operation]
    ) -> list[str]:
        """Returns the names of the variables that a step updates with a value of one shard."""
        handles = {_handle(variable).op: variable.name for variable in variables}
        reached: set[tf.Operation] = set()
        pending = list(self._entries)
        while pending:
            for output in pending.pop().outputs:
                for user in output.consumers():
                    if user not in reached and user in in_step and user not in self._sums:
                        reached.add(user)
                        pending.append(user)
        shared = reached.difference(copied)
        functions = called_functions(shared)
        names = {
            handles[tensor.op]
            for operation in shared
            for tensor in find_updated_handles(operation, functions)
            if tensor.op in handles
        }
        return sorted(names)

    def read_before_update(
        self,
        train_op: tf.Operation,
        copied: Collection[tf.Operation],
        copies: Sequence[Mapping[tf.Operation, Any]],
    ) -> None:
        """Makes copies read a variable before it is updated, if the original operation does."""
        chosen = set(copied)
        updates = [
            operation
            for operation in self.in_step([train_op]) - chosen
            if is_update(operation) or is_call(operation)
        ]
        late = set(updates)
        pending = list(updates)
        while pending:
            for user in self._users.get(pending.pop(), ()):
                if user not in late:
                    late.add(user)
                    pending.append(user)
        for update in updates:
            for tensor in update.inputs:
                if not is_handle(tensor):
                    continue
                readers = [op for op in _readers(tensor) if op in chosen and op not in late]
                reads = [of_shard[reader] for of_shard in copies for reader in readers]
                # TensorFlow has no public way to order existing operations.
                update._add_control_inputs(reads)  # noqa: SLF001


def copy(
    operations: Sequence[tf.Operation], replaced: Mapping[Any, tf.Tensor], shard: int, device: str
) -> dict[tf.Operation, tf.Operation]:
    """Returns a copy, in the same graph, of each of the operations."""
    if not operations:
        return {}
    graph = operations[0].graph
    for operation in operations:
        if operation.type in _LOOPS:
            raise ValueError(
                "Shards can't copy a loop of TensorFlow 1, which tf.while_loop and dynamic_rnn make after "
                "tf.compat.v1.disable_v2_behavior(): call tf.compat.v1.enable_control_flow_v2() after it. "
                f"Received: the loop of {operation.name!r}"
            )
    chosen = set(operations)
    graph_def = tf1.GraphDef()
    inputs: dict[str, tf.Tensor] = {}
    for operation in operations:
        node = graph_def.node.add()
        node.CopyFrom(operation.node_def)
        within = [name for name in node.input if not name.startswith("^")]
        within += [f"^{op.name}" for op in operation.control_inputs if op in chosen]
        del node.input[:]
        node.input.extend(within)
        node.attr.pop("_class", None)  # it may name an operation that is not copied
        handles = [*operation.inputs, *operation.outputs]
        node.device = "" if any(is_handle(tensor) for tensor in handles) else device
        seed = node.attr[_SEED].i if _SEED in node.attr else 0
        if _draws_random_numbers(operation) and (seed or node.attr["seed"].i):  # else unseeded
            node.attr[_SEED].i = (seed + shard * _SEED_STEP) % _MOST_SEEDS
        for tensor in operation.inputs:
            if tensor.op not in chosen:
                inputs[tensor.name] = replaced.get(tensor.ref(), tensor)
    graph_def.versions.CopyFrom(graph.as_graph_def(from_version=graph.version).versions)
    names = [operation.name for operation in operations]
    with tf.control_dependencies(None), graph.name_scope(None), tf1.device(None):
        copies = tf.graph_util.import_graph_def(
            graph_def, inputs, return_elements=names, name=f"shard_{shard}"
        )
    of_shard = dict(zip(operations, copies, strict=True))
    for operation, its_copy in of_shard.items():
        outside = [source for source in operation.control_inputs if source not in chosen]
        if outside:
            its_copy._add_control_inputs(outside)  # noqa: SLF001
    return of_shard


def one_after_the_other(
    users: Callable[[int], Iterable[tf.Operation]],
    updates: Callable[[int], Sequence[tf.Operation]],
    num_shards: int,
) -> None:
    """Makes each shard wait with its use of variables until the previous shard has updated them."""
    for shard in range(1, num_shards):
        previous = list(updates(shard - 1))
        for user in users(shard):
            user._add_control_inputs(previous)  # noqa: SLF001


def _dependents(handle: tf.Tensor, in_step: Collection[tf.Operation]) -> set[tf.Operation]:
    """Returns the operations of a step that use a variable's value, or a value that depends on it."""
    operations: set[tf.Operation] = set()
    tensors = {handle.ref()}
    pending = [handle]
    while pending:
        tensor = pending.pop()
        for user in tensor.consumers():
            if user not in in_step or (tensor is handle and is_update(user)):
                continue
            operations.add(user)
            for output in _dependent_outputs(user, tensor):
                if output.ref() not in tensors:
                    tensors.add(output.ref())
                    pending.append(output)
    return operations


def _dependent_outputs(operation: tf.Operation, tensor: tf.Tensor) -> Sequence[tf.Tensor]:
    """Returns the outputs of an operation whose values depend on one of its inputs."""
    if operation.type in _OF_SHAPES:
        return ()
    if operation.type in _BATCH_NORM and operation.get_attr("is_training"):
        inputs = operation.inputs
        if all(tensor is not input_tensor for input_tensor in inputs[:3]):  # a moving average
            # Training normalizes by the batch. Only the new averages depend on the old ones, if at all.
            factor = operation.get_attr("exponential_avg_factor")
            return () if factor == 1.0 else operation.outputs[1:3]
    return operation.outputs


def _readers(handle: tf.Tensor) -> list[tf.Operation]:
    """Returns the operations that read a variable.

    With `disable_resource_variables`, a read does not copy the value: operations that take its output also
    read the variable.
    """
    if handle.dtype == tf.resource:
        return handle.consumers()
    readers = []
    pending = handle.consumers()
    while pending:
        reader = pending.pop()
        readers.append(reader)
        if reader.type == "Identity":
            pending += reader.outputs[0].consumers()
    return readers


def users_of_updated(operations: Collection[tf.Operation]) -> list[tf.Operation]:
    """Returns the operations that use a variable which one of the operations updates."""
    updated = {
        tensor.ref()
        for operation in operations
        if is_update(operation)
        for tensor in operation.inputs
        if is_handle(tensor)
    }
    return [
        operation for operation in operations if any(tensor.ref() in updated for tensor in operation.inputs)
    ]


def sources(operation: tf.Operation) -> list[tf.Operation]:
    """Returns the operations that an operation directly depends on."""
    return [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]


def _handle(variable: Any) -> tf.Tensor:
    """Returns the tensor by which operations refer to a variable."""
    return variable.handle if hasattr(variable, "handle") else variable.op.outputs[0]


def _draws_random_numbers(operation: tf.Operation) -> bool:
    """Returns whether the operation draws new random numbers each time, with its own seed."""
    return _SEED in operation.node_def.attr and operation.op_def.is_stateful
