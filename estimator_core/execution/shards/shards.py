"""The shards of a model in the graph: each shard's copies of the first shard's operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.shards import shard_copies
from estimator_core.execution.shards.shard_sums import ShardSums
from estimator_core.execution.shards.updates import called_functions
from estimator_core.hooks.host_call import HostCallHook
from estimator_core.hooks.intervals import is_of_library
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook

_CORE = "TPU_REPLICATED_CORE"
_REPLICA_ID = "XlaReplicaId"


class Shards:
    """Copies the first shard's model for the other shards, and finds each shard's copy of a tensor."""

    def __init__(
        self,
        sums: ShardSums,
        operations: Sequence[tf.Operation],
        entries: Sequence[Sequence[tf.Tensor]],
        spec: EstimatorSpec,
        num_shards: int,
    ):
        self._num_shards = num_shards
        replica_ids = find_replica_ids(operations)
        if replica_ids:
            entries = [[*own, tf.constant(shard)] for shard, own in enumerate(entries)]
            replace(replica_ids, entries[0][-1])
        pairs = spec.eval_metric_ops if isinstance(spec.eval_metric_ops, dict) else {}
        metric_updates = [as_operation(update) for _, update in pairs.values()]
        needed = [*needed_tensors(spec), *metric_updates, *(shard_sum.value for shard_sum in sums.sums)]
        common = [shard_sum.operation for shard_sum in sums.sums if shard_sum.groups is None]
        model = shard_copies.ModelGraph(operations, entries[0], common, not metric_updates)
        copied = model.to_copy({as_operation(value) for value in needed})
        if spec.mode == ModeKeys.TRAIN and num_shards > 1:
            _check_weights_stay_equal(model, spec, copied, operations)
        self._copies: list[Any] = [{operation: operation for operation in copied}]
        self._entries = entries
        self._index = {tensor.ref(): index for index, tensor in enumerate(entries[0])}
        for shard in range(1, num_shards):
            replaced = {tensor.ref(): entries[shard][index] for index, tensor in enumerate(entries[0])}
            device = f"/device:CPU:{shard}"
            self._copies.append(shard_copies.copy(copied, replaced, shard, device))
        sums.connect(self.shard_copy)
        if metric_updates:
            # Not every update of a metric is a sum, so the shards make theirs one after the other.
            users = shard_copies.users_of_updated(copied)
            shard_copies.one_after_the_other(
                lambda shard: [self._copies[shard][operation] for operation in users],
                lambda shard: [self.shard_copy(update, shard) for update in metric_updates],
                self._num_shards,
            )
        elif spec.mode == ModeKeys.TRAIN and num_shards > 1:
            model.read_before_update(as_operation(spec.train_op), copied, self._copies)

    def shard_copy(self, value: Any, shard: int) -> Any:
        """Returns the shard's copy of a tensor or operation of the first shard's model."""
        if isinstance(value, tf.Operation):
            return self._copies[shard].get(value, value)
        if not tf.is_tensor(value):
            return value
        if value.ref() in self._index:
            return self._entries[shard][self._index[value.ref()]]
        its_copy = self._copies[shard].get(value.op)
        return value if its_copy is None else its_copy.outputs[value.value_index]

    def all_copies(self, value: Any) -> list[Any]:
        return [self.shard_copy(value, shard) for shard in range(self._num_shards)]


def _check_weights_stay_equal(
    model: shard_copies.ModelGraph,
    spec: EstimatorSpec,
    copied: Sequence[tf.Operation],
    operations: Sequence[tf.Operation],
) -> None:
    weights, variables = tf1.trainable_variables(), tf1.global_variables()
    fetches = [spec.train_op, *needed_tensors(spec)]
    hooks = [hook for hook in spec.training_hooks if not is_of_library(hook)]
    if hooks:  # they may run any operation
        fetches = list(operations)
    in_step = model.in_step(as_operation(value) for value in fetches)
    updated_by_one = model.updates_by_one_shard(weights, copied, in_step)
    if updated_by_one:
        raise ValueError(
            "The shards would train different weights: their updates are not sums over all shards. "
            "Let a tf.compat.v1.tpu.CrossShardOptimizer, without group_assignment, update every "
            f"trainable variable. {_reason(hooks)}Received: variables {updated_by_one}"
        )
    read_again = model.read_again(variables, weights, copied, in_step)
    if read_again:
        raise ValueError(
            "Shards share one set of variables, so none can keep its own value for a later step, "
            "such as accumulated gradients: sum it over the shards first "
            f"(tf.compat.v1.tpu.cross_replica_sum). {_reason(hooks)}Received: variables {read_again}"
        )


def find_replica_ids(operations: Sequence[tf.Operation]) -> list[tf.Tensor]:
    """Returns the numbers of the shard that a model reads, which TensorFlow has for TPUs and GPUs only."""
    in_functions = [
        name
        for name, function in called_functions(operations).items()
        if any(node.op == _REPLICA_ID for node in function.node_def)
    ]
    if in_functions:
        raise ValueError(
            "On virtual shards, a tf.function, loop or branch can't call replica_id(): call it outside, and "
            f"hand the number in. Received: functions {in_functions}"
        )
    return [operation.outputs[0] for operation in operations if operation.type == _REPLICA_ID]


def replace(tensors: Sequence[tf.Tensor], other: tf.Tensor) -> None:
    """Makes all users of the tensors take another tensor."""
    for tensor in tensors:
        for user in tensor.consumers():
            for index, value in enumerate(user.inputs):
                if value is tensor:
                    user._update_input(index, other)  # noqa: SLF001


def needed_tensors(spec: EstimatorSpec) -> list[Any]:
    """Returns the tensors that every shard computes."""
    hooks = (*spec.training_hooks, *spec.evaluation_hooks, *spec.prediction_hooks)
    structures = [hook.tensors for hook in hooks if isinstance(hook, HostCallHook)]
    structures.append(spec.loss)
    if isinstance(spec.eval_metric_ops, MetricFn):
        structures.append(spec.eval_metric_ops.tensors)
    if spec.mode == ModeKeys.PREDICT:
        structures.append(spec.predictions)
    flat = tf.nest.flatten(structures, expand_composites=True)
    return [value for value in flat if tf.is_tensor(value)]


def as_operation(value: Any) -> tf.Operation:
    """Returns the operation of a tensor or of the result of an assignment to a variable."""
    return value if isinstance(value, tf.Operation) else value.op


def _reason(hooks: Sequence[Hook]) -> str:
    """Returns why an update that train_op does not run counts, for an error."""
    if not hooks:
        return ""
    kinds = sorted({type(hook).__name__ for hook in hooks})
    return f"Updates that train_op does not run count too, as training_hooks may run them: {kinds}. "


def place_on_shard(operations: Sequence[tf.Operation], num_cores: int) -> None:
    """Places operations on their shard, regardless of the core given by `tf.compat.v1.tpu.core`.

    Operations within functions keep their core; sessions move them, as with any other device that does not
    exist.
    """
    for operation in operations:
        if _CORE in operation.device:
            _check(operation.device, num_cores, operation.name)
            here = tf.DeviceSpec.from_string(operation.device).replace(device_type=None, device_index=None)
            # TensorFlow has no public way to change the device of an operation.
            operation._set_device(here)  # noqa: SLF001
    if operations:
        for function in operations[0].graph.as_graph_def().library.function:
            for node in function.node_def:
                if _CORE in node.device:
                    _check(node.device, num_cores, f"{function.signature.name}/{node.name}")


def _check(device: str, num_cores: int, name: str) -> None:
    core = tf.DeviceSpec.from_string(device).device_index
    if core >= num_cores:
        raise ValueError(
            f"A copy of the model has the cores 0 to {num_cores - 1}: set TPUConfig's num_cores_per_replica, "
            f"or use another core in tf.compat.v1.tpu.core. Received: tpu.core({core}) for operation "
            f"{name!r}, num_cores_per_replica={num_cores}"
        )
