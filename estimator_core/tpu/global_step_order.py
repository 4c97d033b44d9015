"""The order of a training step's reads of the global step and of its increment."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1

_READS = ("ReadVariableOp",)
_CALLS = ("Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While")
_WRITES = ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp")
_REF_WRITES = ("Assign", "AssignAdd", "AssignSub")


def read_before_write(train_op: Any, *others: Any) -> None:
    """Orders a step's reads of the global step before its increment, in `train_op` and the ops run with it.

    A learning rate schedule reads the global step, the optimizer increments it, and the graph does not
    order the two: on a busy machine a schedule occasionally sees the next step. This function adds the
    order: direct reads, then functions (`tf.cond`, `tf.while_loop`, `tf.function`), then
    direct writes. Reads that the graph orders after a write stay there. It adds nothing that `train_op`
    does not run anyway.
    not run anyway.

    `train_op`: operation or `Tensor` of one training step, in the default graph.

    Source: tf.estimator 2.15 leaves the order open, and almost always reads first.
    """
    run = [value.op if tf.is_tensor(value) else value for value in (train_op, *others)]
    steps = _with_ancestors(run)
    reads, calls, writes = (
        [user for user in users if user in steps] for users in _users(tf1.train.get_global_step())
    )
    late = [user for user in reads + calls if not _with_ancestors([user]).isdisjoint(writes)]
    reads, calls = ([user for user in users if user not in late] for users in (reads, calls))
    _put_before(reads, calls + writes)
    _put_before(calls, writes)


def _users(variable: Any) -> tuple[list[tf.Operation], ...]:
    """Returns the direct reads of a variable, the functions that take it, and its direct writes."""
    if hasattr(variable, "handle"):
        users = variable.handle.consumers()
        kinds = (_READS, _CALLS, _WRITES)
        return tuple([user for user in users if user.type in kind] for kind in kinds)
    # With `disable_resource_variables` a read is no copy: the operations that use its value come first.
    users = variable.op.outputs[0].consumers()
    reads = [read for user in users if user.type == "Identity" for read in _reads_through(user)]
    return reads, [], [user for user in users if user.type in _REF_WRITES]


def _reads_through(identity: tf.Operation) -> list[tf.Operation]:
    """Returns the operations that read a value through identities, which don't copy it."""
    reads = []
    for user in identity.outputs[0].consumers():
        reads += _reads_through(user) if user.type == "Identity" else [user]
    return reads or [identity]


def _put_before(first: list[tf.Operation], then: list[tf.Operation]) -> None:
    """Runs `first` before `then`, except for pairs that the graph orders the other way."""
    for late in then:
        early = [operation for operation in first if late not in _with_ancestors([operation])]
        # TensorFlow has no public way to order existing operations.
        late._add_control_inputs(early)  # noqa: SLF001


def _with_ancestors(operations: list[tf.Operation]) -> set[tf.Operation]:
    """Returns the operations, and all that have to run before them."""
    reached = set(operations)
    pending = list(operations)
    while pending:
        operation = pending.pop()
        for source in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if source not in reached:
                reached.add(source)
                pending.append(source)
    return reached
