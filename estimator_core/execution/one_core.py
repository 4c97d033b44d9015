"""One core of many: the graph that each core of a TPU runs, built to check that it compiles."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Step, StepFn
from estimator_core.execution.evaluation_metrics import with_metric_ops
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.sharded import Sharded, Sharding
from estimator_core.execution.shards.shard_sums import ShardSums
from estimator_core.execution.shards.shards import needed_tensors
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn


class OneCore(Sharded):
    """Builds the model of one shard, with a TPU's own operations for sums over the shards.

    There is no session for it, and no input: the batch consists of placeholders. String outputs of a model
    that was not written for a TPU, such as class names, are left to the host.
    """

    def __init__(self, sharding: Sharding):
        super().__init__(dataclasses.replace(sharding, has_static_shapes=True))
        self.feeds: list[tf.Tensor] = []
        self.fetches: list[Any] = []

    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns placeholders for the batch of the first shard."""
        batch = super().make_inputs(input_fn, mode).next_batches(self.num_replicas)[0]

        def placeholder(path: Sequence[Any], tensor: tf.Tensor) -> Any:
            part, *names = path
            where = f"{'labels' if part else 'features'}{''.join(f'[{name!r}]' for name in names)}"
            if tensor.dtype in (tf.string, tf.variant, tf.resource):
                raise ValueError(
                    f"A TPU has no tensors of type {tensor.dtype.name}: let input_fn turn it into numbers, "
                    "for instance by tf.keras.layers.StringLookup or tf.strings.to_hash_bucket_fast in "
                    f"Dataset.map. Received: {where} of type {tensor.dtype.name}"
                )
            made = tf1.placeholder(tensor.dtype, tensor.shape)
            self.feeds.append(made)
            return made

        placeholders = _mapped_with_path(placeholder, batch)
        return Inputs(lambda: placeholders, mode)

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        self._sums = sums = _CollectiveSums(self.num_replicas)
        with sums.replacing_sums(tf1.get_default_graph()):
            spec = step_fn(*inputs.next_batch())
        self.check_has_sums(mode)
        sums.connect_cores()
        self.fetches = needed_tensors(spec)
        if mode == ModeKeys.TRAIN:
            self.fetches.append(spec.train_op)
        elif mode == ModeKeys.EVAL:
            if not isinstance(spec.eval_metric_ops, MetricFn):  # the host computes the metrics
                self.fetches += tf.nest.flatten(spec.predictions)
            spec = with_metric_ops(spec)
        if self.adds_up_gradients:  # the model was not written for a TPU
            self.fetches = _without_strings(self.fetches)
        return Step(spec)


def _without_strings(fetches: Sequence[Any]) -> list[Any]:
    """Returns the fetches with strings replaced by the tensors from which the host can compute them."""
    changed: dict[Any, Any] = {}
    pending = list(fetches)
    while pending:
        fetch = pending.pop(0)
        if not tf.is_tensor(fetch) or fetch.dtype not in (tf.string, tf.resource):
            changed[fetch if not tf.is_tensor(fetch) else fetch.ref()] = fetch
        else:
            pending += fetch.op.inputs
    return list(changed.values())


class _CollectiveSums(ShardSums):
    """Sums over cores, each computed by one collective operation."""

    def reduce_gradient(self, gradient: Any, average: bool) -> Any:
        """Returns the sum or the mean of a gradient over all cores; it is dense, as on a TPU."""
        return super().reduce_gradient(tf.convert_to_tensor(gradient), average)

    def connect_cores(self) -> None:
        """Connects each sum to the collective operation that computes it."""
        numbers = itertools.count(1)
        with tf.control_dependencies(None), tf.name_scope("sums_over_cores"):
            for cross_sum, number in zip(self.sums, numbers):  # noqa: B905  # one is endless
                groups = cross_sum.groups or (tuple(range(self._num_shards)),)
                size, group = tf.unstack(
                    tf.raw_ops.CollectiveAssignGroupV2(
                        group_assignment=groups, device_index=0, base_key=number
                    )
                )
                total = tf.raw_ops.CollectiveReduceV2(
                    input=cross_sum.value,
                    group_size=size,
                    group_key=group,
                    instance_key=number,
                    ordering_token=[],
                    merge_op="Add",
                    final_op="Id",
                )
                # TensorFlow has no public way to change an input of an operation.
                cross_sum.operation._update_input(0, total)  # noqa: SLF001


def _mapped_with_path(function: Any, structure: Any, path: tuple[Any, ...] = ()) -> Any:
    """Returns the structure with each tensor replaced by `function(path, tensor)`; None stays."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {name: _mapped_with_path(function, value, (*path, name)) for name, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        values = [_mapped_with_path(function, value, (*path, index)) for index, value in enumerate(structure)]
        return type(structure)(*values) if hasattr(structure, "_fields") else type(structure)(values)
    return function(path, structure)
