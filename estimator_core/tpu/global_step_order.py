"""The order in which a training step reads the global step and counts itself."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1

_READ = "ReadVariableOp"
_CALLS = ("Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While")
_WRITES = ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp")


def read_before_write(train_op: Any) -> None:
    """Makes what `train_op` reads of the global step its value before the step.

    A learning rate schedule reads the global step, the optimizer increments it, and nothing in the
    graph says which comes first: on a busy machine a schedule sees, now and then, the step after. The
    order is added here: direct reads, then functions (`tf.cond`, `tf.while_loop`, `tf.function`), then
    direct writes. A read that the graph puts after a write stays there. Nothing is added that
    `train_op` does not run anyway.

    Args:
        train_op: Operation or `Tensor` of one training step, in the default graph.

    Source: tf.estimator 2.15 leaves the order open, and almost always reads first.
    """
    global_step = tf1.train.get_global_step()
    steps = _with_ancestors([train_op.op if tf.is_tensor(train_op) else train_op])
    users = [user for user in global_step.handle.consumers() if user in steps]
    reads, calls, writes = (
        [user for user in users if user.type in types] for types in ((_READ,), _CALLS, _WRITES)
    )
    _put_before(reads, calls + writes)
    _put_before(calls, writes)


def _put_before(first: list[tf.Operation], then: list[tf.Operation]) -> None:
    """Runs `first` before `then`, but for those that depend on one of `then` already."""
    for late in then:
        early = [operation for operation in first if late not in _with_ancestors([operation])]
        # TensorFlow has no public way to order operations that are there already.
        late._add_control_inputs(early)


def _with_ancestors(operations: list[tf.Operation]) -> set[tf.Operation]:
    """Returns the operations, and those that have to run before them."""
    reached = set(operations)
    pending = list(operations)
    while pending:
        operation = pending.pop()
        for source in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if source not in reached:
                reached.add(source)
                pending.append(source)
    return reached
