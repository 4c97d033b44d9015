"""Sums over shards: identities in the first shard's model that later get the sum of all shards."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1

CROSS_REPLICA_SUM = "CrossReplicaSum"

Replace = Callable[[tf.Tensor, tf.Tensor, str], tf.Operation]
"""Function of (value of the replica, group assignment, name) that returns the op of the sum."""
_ADVICE = "take the sums outside of them"
_GRADIENT = "EstimatorCoreShardSum"


@tf.RegisterGradient(_GRADIENT)
def _gradient_of_sum(operation: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of a sum over shards: the sum of all shards' gradients, as on a TPU."""
    return _sums_of[operation].add(gradient)


_sums_of: dict[tf.Operation, Any] = {}  # only while gradients can still be computed


@dataclasses.dataclass(frozen=True)
class Sum:
    """A value that shards add up."""

    # Identity of the first shard's value. `connect` changes its input to the sum.
    operation: tf.Operation
    value: tf.Tensor  # Value of the first shard
    # Groups of shards that add up their values; None is all shards.
    groups: tuple[tuple[int, ...], ...] | None = None
    is_concatenated: bool = False  # True if values are concatenated on axis 0 instead of added


class ShardSums:
    """The sums over shards that the model of one shard asks for.

    The model of the first shard is built before the others, so each sum is an identity at first.
    """

    def __init__(self, num_shards: int):
        self._num_shards = num_shards
        self.sums: list[Sum] = []
        self._reduced: set[tf.Operation] = set()

    @contextlib.contextmanager
    def replacing_sums(self, graph: tf.Graph) -> Any:
        """Turns each `tf.compat.v1.tpu.cross_replica_sum` of a model into a sum over shards."""

        def replace(value: tf.Tensor, groups: tf.Tensor, name: str) -> tf.Operation:
            # `replaced_sums` refuses the same within functions of TensorFlow 2.
            if graph._get_control_flow_context() is not None:  # noqa: SLF001
                raise ValueError(
                    "Sums over shards can't be made within tf.cond or tf.while_loop: "
                    f"{_ADVICE}. Received: {value}"
                )
            if self.are_reduced([value])[0]:
                return tf.identity(value, name=name).op
            return self.add(value, self._checked_groups(groups), name).op

        try:
            with replaced_sums(graph, replace, _ADVICE):
                yield
        finally:
            for shard_sum in self.sums:
                _sums_of.pop(shard_sum.operation, None)

    def add(
        self, value: tf.Tensor, groups: tuple[tuple[int, ...], ...] | None = None, name: str | None = None
    ) -> tf.Tensor:
        """Returns the sum of a value over the shards."""
        with value.graph.gradient_override_map({"Identity": _GRADIENT}):
            total = tf.identity(value, name=name or "shard_sum")
        adder = _WithGroups(self, groups)
        _sums_of[total.op] = adder
        self.sums.append(Sum(total.op, value, groups))
        return total

    def reduce_gradient(self, gradient: Any, average: bool) -> Any:
        """Returns the sum or the mean of a gradient over all shards.

        `gradient`: `Tensor`, or `IndexedSlices`, whose slices are concatenated.
        """
        graph = tf1.get_default_graph()
        in_context = graph._get_control_flow_context() is not None  # noqa: SLF001
        if in_context or isinstance(graph, tf.__internal__.FuncGraph):
            raise ValueError(
                "Gradients of shards can't be summed up within tf.cond, tf.while_loop or tf.function: call "
                "apply_gradients or minimize outside of them; a condition can choose a learning rate of 0. "
                f"Received: {gradient}"
            )
        if isinstance(gradient, tf.IndexedSlices):
            values, indices = self._together(gradient.values), self._together(gradient.indices)
            values = values / self._num_shards if average else values
            return tf.IndexedSlices(values, indices, gradient.dense_shape)
        total = self.add(gradient)
        self._reduced.add(total.op)
        return total / self._num_shards if average else total

    def _together(self, value: tf.Tensor) -> tf.Tensor:
        together = tf.identity(_with_any_length(value))
        self._reduced.add(together.op)
        self.sums.append(Sum(together.op, value, is_concatenated=True))
        return together

    def are_reduced(self, values: Sequence[Any]) -> list[bool]:
        """Returns, for each value, whether it depends on gradients that are already summed."""
        reached = set(self._reduced)
        pending = list(self._reduced)
        while pending:
            for output in pending.pop().outputs:
                new = [user for user in output.consumers() if user not in reached]
                reached.update(new)
                pending += new
        tensors = [v.values if isinstance(v, tf.IndexedSlices) else v for v in values]
        return [tensor is not None and tensor.op in reached for tensor in tensors]

    def _checked_groups(self, tensor: tf.Tensor) -> tuple[tuple[int, ...], ...] | None:
        """Returns a group assignment; None if all shards are in one group, or no assignment is given."""
        value = tf.get_static_value(tensor)
        groups = None if value is None else tuple(tuple(int(i) for i in row) for row in value)
        everyone = tuple(range(self._num_shards))
        if groups in (((0,),), (everyone,)):  # the first is TensorFlow's default outside of a TPU
            return None
        if groups is None or sorted(shard for group in groups for shard in group) != list(everyone):
            raise ValueError(
                f"group_assignment must have each of the shards 0 to {self._num_shards - 1} in one "
                f"group. Received: group_assignment={groups}"
            )
        return groups

    def connect(self, of_shard: Callable[[tf.Tensor, int], tf.Tensor]) -> None:
        """Connects each sum to the values of the shards.

        `of_shard`: function of (tensor of the first shard, shard number) that returns the shard's tensor.
        """
        with tf.control_dependencies(None), tf.name_scope("shard_sums"):
            for shard_sum in self.sums:
                everyone = (tuple(range(self._num_shards)),)
                for group in shard_sum.groups or everyone:
                    values = [of_shard(shard_sum.value, shard) for shard in group]
                    if shard_sum.is_concatenated:
                        total = _with_any_length(tf.concat(values, axis=0))
                    else:
                        total = tf.add_n(values)
                    owners = group if shard_sum.groups else (0,)
                    for shard in owners:
                        operation = of_shard(shard_sum.operation.outputs[0], shard).op
                        # TensorFlow has no public way to change an input of an operation.
                        operation._update_input(0, total)  # noqa: SLF001


def _with_any_length(value: tf.Tensor) -> tf.Tensor:
    """Returns the value with an unknown first dimension, which fits one shard and all of them."""
    return tf1.placeholder_with_default(value, [None, *value.shape.as_list()[1:]])


@dataclasses.dataclass(frozen=True)
class _WithGroups:
    sums: ShardSums
    groups: tuple[tuple[int, ...], ...] | None

    def add(self, value: tf.Tensor) -> tf.Tensor:
        return self.sums.add(value, self.groups)


@contextlib.contextmanager
def replaced_sums(graph: tf.Graph, replace: Replace, advice: str) -> Iterator[None]:
    """Opens a context in which `replace` creates each sum over replicas that is added to `graph`.

    `tf.compat.v1.tpu.CrossShardOptimizer` sums gradients by an operation that only a TPU has. A graph
    that contains it runs nowhere else, even if nothing uses its result. Other graphs are not touched.
    """
    # TensorFlow has no public way to replace a type of operation. All wrappers of operations call
    # `_create_op_internal`, in TensorFlow 2.16 to 2.21.
    create = graph._create_op_internal  # noqa: SLF001

    def create_elsewhere(op_type: str, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if op_type == CROSS_REPLICA_SUM:
            return replace(inputs[0], inputs[1], kwargs["name"])
        return create(op_type, inputs, *args, **kwargs)

    graph._create_op_internal = create_elsewhere  # noqa: SLF001
    try:
        yield
    finally:
        del graph._create_op_internal  # noqa: SLF001
    for function in graph.as_graph_def().library.function:
        if any(node.op == CROSS_REPLICA_SUM for node in function.node_def):
            raise ValueError(
                "Sums over replicas, such as those of a CrossShardOptimizer, can't be made within "
                f"tf.cond, tf.while_loop or tf.function where there is no TPU: {advice}. Received: "
                f"{CROSS_REPLICA_SUM} in the function {function.signature.name!r}"
            )
