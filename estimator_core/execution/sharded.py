"""Shards: copies of the model in one graph that divide a global batch, like the cores of a TPU."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import GradientUpdate, LoopSize, Step, StepFn
from estimator_core.execution.evaluation_metrics import mean_of_batches, with_evaluation_metrics
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.loops.in_graph_loop import ManySteps, RepeatsSteps, with_calls_in_order
from estimator_core.execution.shards import shard_optimizers
from estimator_core.execution.shards.shard_inputs import (
    PaddedInputs,
    ShardInput,
    padded_inputs,
    shard_inputs,
    with_padding,
)
from estimator_core.execution.shards.shard_sums import ShardSums
from estimator_core.execution.shards.shards import Shards, as_operation, place_on_shard
from estimator_core.execution.single_device import SingleDevice
from estimator_core.hooks.host_call import HostCallHook
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn

_ONE_STEP = LoopSize(1)
_MOST_STEPS = 1000  # of a loop whose size is given in seconds


@dataclasses.dataclass(frozen=True)
class Sharding:
    """The division of one mode into shards."""

    num_shards: int  # Number of copies of the model
    kind: ShardInput = ShardInput.SPLIT  # Way in which the shards get their batches
    # Dimensions along which features and labels are split; None is the first.
    batch_axis: tuple[int, ...] | None = None
    # Examples in a batch of input_fn, for prediction, where smaller batches are padded.
    batch_size: int | None = None
    # True to average the gradients of any optimizer over the shards. Otherwise the model does so,
    # by a `CrossShardOptimizer`.
    adds_up_gradients: bool = False
    has_static_shapes: bool = True  # True to refuse batches of unknown size, as on a TPU
    loop_size: LoopSize = _ONE_STEP  # Length of a loop of training steps
    # True if sparse features are allowed, as for embedding tables of a TPU.
    takes_sparse: bool = False
    cores_per_replica: int = 1  # Cores that a copy of the model may name by `tf.compat.v1.tpu.core`


class Sharded(RepeatsSteps):
    """Runs shards of a model on virtual CPU devices of one process.

    As on a TPU, model_fn is called once, for the first shard; the operations that depend on the batch are
    copied for the others. There is one set of variables, updated by the first shard with sums over the
    shards. A model whose weights would differ from shard to shard is refused.

    `session_config`: `ConfigProto` of the sessions; they get a CPU device for each shard.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimator`. It sends variables that differ from core to core,
    such as moving averages, from the first core to all others after each loop.
    """

    def __init__(self, sharding: Sharding, session_config: Any = None):
        size = sharding.loop_size
        super().__init__(ManySteps(size.steps if size.secs is None else _MOST_STEPS))
        self.num_replicas = sharding.num_shards
        self.loop_size = sharding.loop_size
        self.adds_up_gradients = sharding.adds_up_gradients
        self._sharding = sharding
        config = _with_cpus(session_config, sharding.num_shards)
        self._in_process = SingleDevice(with_calls_in_order(config))
        self._sums = ShardSums(sharding.num_shards)
        self._takes_mean, self._has_shares = True, False
        self._losses_as_they_are = False

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Opens the context in which `tf.compat.v1.train` optimizers know the number of shards."""
        with shard_optimizers.knowing_shards():
            yield

    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        kind, shards = self._sharding.kind, self.num_replicas
        calls = shards if kind is ShardInput.OWN else 1
        with tf1.device("/cpu:0"):
            results = [input_fn(tf.distribute.InputContext(calls, call, shards)) for call in range(calls)]
            if mode == ModeKeys.PREDICT and self._sharding.batch_size:
                size, takes_sparse = self._sharding.batch_size, self._sharding.takes_sparse
                return padded_inputs(results[0], kind, size, shards, takes_sparse)
            sharding = self._sharding
            return shard_inputs(
                results, kind, sharding.batch_axis, sharding.has_static_shapes, mode, sharding.takes_sparse
            )

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        graph = tf1.get_default_graph()
        self._sums = ShardSums(self.num_replicas)
        self._takes_mean, self._has_shares = True, False
        # Each shard needs its own tensors, even if all have the same batch.
        batches = tf.nest.map_structure(
            lambda tensor: None if tensor is None else tf.identity(tensor),
            inputs.next_batches(self.num_replicas),
        )
        entries = [
            [tensor for tensor in tf.nest.flatten(batch, expand_composites=True) if tensor is not None]
            for batch in batches
        ]
        features, labels = batches[0]
        if isinstance(inputs, PaddedInputs):
            features, labels = with_padding(features, labels), None
        of_shards = [tf.nest.flatten(batch) for batch in batches]  # model_fn may change the dicts
        num_before = len(graph.get_operations())
        with self._sums.replacing_sums(graph):
            spec = step_fn(features, labels)
        self.check_has_sums(mode)
        operations = graph.get_operations()[num_before:]
        place_on_shard(operations, self._sharding.cores_per_replica)
        shards = Shards(self._sums, operations, entries, spec, self.num_replicas)
        combined = self._combined(spec, shards, inputs)
        if mode == ModeKeys.EVAL:
            loss = mean_of_batches(shards.all_copies(spec.loss), of_shards)
            combined = with_evaluation_metrics(combined._replace(loss=loss), of_shards)
        return self.make_step(combined, mode)

    def check_has_sums(self, mode: str) -> None:
        """Checks, after the model is built, that training sums something over the shards."""
        if mode == ModeKeys.TRAIN and self.num_replicas > 1 and not self._sums.sums:
            raise ValueError(
                "CrossShardOptimizer must be used for model training on TPUs: wrap the optimizer in "
                "tf.compat.v1.tpu.CrossShardOptimizer, or let estimator_core.tpu.to_tpu_estimator do it. "
                f"Received: no sum over the {self.num_replicas} shards"
            )

    def session_creator(
        self, scaffold: Any, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns the creator of a session in this process, with a CPU device for each shard."""
        return self._in_process.session_creator(
            scaffold, checkpoint_dir=checkpoint_dir, checkpoint_path=checkpoint_path
        )

    def _combined(self, spec: EstimatorSpec, shards: Shards, inputs: Inputs) -> EstimatorSpec:
        is_same = self._sharding.kind is ShardInput.SAME
        together = functools.partial(_concatenated, shards, 1 if is_same else self.num_replicas)
        hooks = (*spec.training_hooks, *spec.evaluation_hooks, *spec.prediction_hooks)
        for hook in set(hooks):
            if isinstance(hook, HostCallHook):
                hook.call(_mapped(together, hook.tensors, "host_call"))
        changes: dict[str, Any] = {}
        if spec.loss is not None:
            losses = [shards.shard_copy(spec.loss, shard) for shard in range(self.num_replicas)]
            total = tf.add_n(losses)
            changes["loss"] = total / self.num_replicas if self._takes_mean else total
        if isinstance(spec.eval_metric_ops, MetricFn):
            tensors = _mapped(together, spec.eval_metric_ops.tensors, "eval_metrics")
            changes["eval_metric_ops"] = dataclasses.replace(spec.eval_metric_ops, tensors=tensors)
        elif spec.eval_metric_ops:
            count = 1 if is_same else self.num_replicas  # the same batch counts once
            changes["eval_metric_ops"] = {
                name: (value, tf.group(*shards.all_copies(as_operation(update))[:count]))
                for name, (value, update) in spec.eval_metric_ops.items()
            }
        if spec.mode == ModeKeys.PREDICT:
            keep = None
            if isinstance(inputs, PaddedInputs):
                masks = inputs.is_padding[:1] if is_same else inputs.is_padding
                keep = tf.equal(tf.concat(masks, axis=0), 0)
            changes["predictions"] = tf.nest.map_structure(
                lambda tensor: together(tensor, "predictions"), spec.predictions
            )
            if keep is not None:
                changes["predictions"] = tf.nest.map_structure(
                    lambda tensor: tf.boolean_mask(tensor, keep), changes["predictions"]
                )
        return spec._replace(**changes)

    @property
    def shards_of_optimizers(self) -> int:
        """Number of shards for a `CrossShardOptimizer`."""
        return 1 if self.adds_up_gradients else self.num_replicas

    @property
    def num_models(self) -> int:
        """Number of models that model_fn builds: 1, as the other shards have copies of it."""
        return 1

    # For code that builds a model

    @property
    def is_replicated(self) -> bool:
        """True: copies of the model interact in the graph."""
        return True

    @property
    def copies_operations(self) -> bool:
        """True: the operations of one model are copied."""
        return True

    def share_of_mean(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss of a shard's batch, divided by the number of shards."""
        if not self.adds_up_gradients:
            return loss
        self._has_shares = True
        return loss / self.num_replicas

    def whole_sum(self, loss: tf.Tensor) -> tf.Tensor:
        return self._sums.add(loss) if self.adds_up_gradients else loss

    @contextlib.contextmanager
    def losses_as_they_are(self) -> Iterator[None]:
        """Opens a context in which the gradients of `tf.compat.v1.train` optimizers are not averaged."""
        previous, self._losses_as_they_are = self._losses_as_they_are, True
        try:
            yield
        finally:
            self._losses_as_they_are = previous

    def sum_gradients(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns pairs of gradient and variable with the sum of all shards' gradients."""
        if not self.adds_up_gradients:
            return list(pairs)
        self._takes_mean = self._has_shares  # without `share_of_mean`, the loss is a sum
        return self._reduced(pairs, average=False)

    def sum_over_replicas(self, gradient: Any) -> Any:
        """Returns the sum of a gradient over the shards; `IndexedSlices` are concatenated."""
        return self._sums.reduce_gradient(gradient, average=False)

    def average_gradients(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns pairs of gradient and variable with the mean of all shards' gradients."""
        if not self.adds_up_gradients or self._losses_as_they_are:
            return list(pairs)
        return self._reduced(pairs, average=True)

    def _reduced(self, pairs: Sequence[tuple[Any, Any]], average: bool) -> list[tuple[Any, Any]]:
        """Returns the pairs with reduced gradients; gradients that are already summed stay unchanged."""
        pairs = list(pairs)
        are_reduced = self._sums.are_reduced([gradient for gradient, _ in pairs])
        return [
            (
                gradient if gradient is None or is_reduced else self._sums.reduce_gradient(gradient, average),
                variable,
            )
            for (gradient, variable), is_reduced in zip(pairs, are_reduced, strict=True)
        ]

    def update_by_sums(self, updates: Sequence[GradientUpdate], counter: Any) -> tf.Operation:
        """Returns the op that updates each variable by the sum of all shards' gradients."""
        pairs = self._reduced([(gradient, variable) for gradient, variable, _ in updates], False)
        summed = [
            (gradient, variable, update)
            for (gradient, variable), (_, _, update) in zip(pairs, updates, strict=True)
        ]
        return super().update_by_sums(summed, counter)


def _concatenated(shards: Shards, count: int, tensor: Any, argument: str) -> tf.Tensor:
    """Returns the values of a tensor in the first `count` shards, concatenated on axis 0."""
    tensor = tf.convert_to_tensor(tensor)
    if count == 1:
        return shards.shard_copy(tensor, 0)
    if tensor.shape.rank == 0:
        raise RuntimeError(
            f"All tensors of {argument} need a batch dimension, along which the shards' values are "
            f"concatenated; reshape a scalar to [1]. Received: scalar {tensor}"
        )
    return tf.concat([shards.shard_copy(tensor, shard) for shard in range(count)], axis=0)


def _mapped(function: Callable[..., Any], tensors: Any, argument: str) -> Any:
    return tf.nest.map_structure(lambda tensor: function(tensor, argument), tensors)


def _with_cpus(session_config: Any, count: int) -> Any:
    """Returns the session configuration with a CPU device for each shard."""
    config = tf1.ConfigProto()
    if session_config is not None:
        config.CopyFrom(session_config)
    else:
        config.allow_soft_placement = True
    config.device_count["CPU"] = max(count, config.device_count.get("CPU", 0))
    return config
