"""Replicas by `tf.distribute`: a copy of the model on each device of this process, training in step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import GradientUpdate, Step, StepFn
from estimator_core.execution.evaluation_metrics import with_evaluation_metrics
from estimator_core.execution.inputs import Inputs, inputs_from_dataset
from estimator_core.execution.loops.in_graph_loop import ManySteps, RepeatsSteps
from estimator_core.execution.single_device import SingleDevice
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn


class ReplicasInSync(RepeatsSteps):
    """Runs a copy of the model on each device of a `tf.distribute` strategy.

    Each replica takes its own batch: the batch size of input_fn is that of one replica. If there are not
    enough batches for all replicas at the end of the input, the remaining ones are dropped.

    `many_steps`: limits on the training steps of a session call; None makes one.

    Source: `train_distribute` and `eval_distribute` of `tf.estimator.RunConfig`.
    """

    def __init__(self, strategy: Any, session_config: Any = None, many_steps: ManySteps | None = None):
        super().__init__(many_steps)
        self.strategy = strategy
        self._in_process = SingleDevice(_with_all_cpus(session_config), many_steps=many_steps)
        self.num_replicas = strategy.num_replicas_in_sync

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the strategy's scope, in which `tf.compat.v1.train` optimizers average.

        Without the second context, they would treat each replica's mean loss as a share of the total loss.
        """
        contexts = contextlib.ExitStack()
        contexts.enter_context(self.strategy.scope())
        contexts.enter_context(self._scaling_of_losses(True))
        return contexts

    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns the iterator over one input pipeline, whose batches go to the replicas in turn."""
        context = tf.distribute.InputContext(1, 0, self.num_replicas)
        with tf1.device("/cpu:0"):
            return inputs_from_dataset(self._dataset(input_fn, context), mode)

    def _dataset(self, input_fn: InputFn, context: Any) -> tf.data.Dataset:
        dataset = input_fn(context)
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(
                "Under a tf.distribute strategy, input_fn must return a tf.data.Dataset. "
                f"Received: {dataset!r}"
            )
        return dataset

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the step of all replicas together.

        Hooks, predictions and the saver come from the first replica.
        """
        batches = inputs.next_batches(self.num_models)
        specs: dict[int, EstimatorSpec] = {}

        @tf.autograph.experimental.do_not_convert
        def in_replica() -> None:
            context = tf.distribute.get_replica_context()
            replica = int(tf.get_static_value(context.replica_id_in_sync_group))
            batch = batches[replica % len(batches)]  # replicas are numbered across all processes
            tensors = tf.nest.flatten(batch)  # now, as model_fn may remove features from their dict
            spec = step_fn(*batch)
            specs[replica] = with_evaluation_metrics(spec, tensors) if mode == ModeKeys.EVAL else spec

        self.strategy.extended.call_for_each_replica(in_replica)
        return self.make_step(_combined([specs[replica] for replica in sorted(specs)]), mode)

    def session_creator(
        self, scaffold: Any, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns the creator of a session in this process, with all devices."""
        return self._in_process.session_creator(
            scaffold, checkpoint_dir=checkpoint_dir, checkpoint_path=checkpoint_path
        )

    # For code that builds a model

    @property
    def is_replicated(self) -> bool:
        """True: copies of the model interact in the graph, even if there is only one."""
        return True

    @property
    def is_in_replica(self) -> bool:
        """True if the running code builds one of the copies."""
        return tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()

    def share_of_mean(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss of a replica's batch, divided by the number of replicas."""
        return loss / self.num_replicas if self.num_replicas > 1 else loss

    def mean_over_replicas(self, value: tf.Tensor) -> tf.Tensor:
        """Returns the mean of a value over the replicas of this process; each of them calls it."""
        if not self.is_in_replica:
            return value

        def meet(strategy: Any, value: Any) -> tf.Tensor:
            values = strategy.experimental_local_results(value)
            return tf.add_n(values) / len(values)

        return tf.distribute.get_replica_context().merge_call(meet, args=(value,))

    def read_over_replicas(self, function: Callable[[], Any]) -> Any:
        """Returns the result of the first replica's function, called outside of the replicas."""
        if not self.is_in_replica:
            return function()

        def meet(strategy: Any, function: Any) -> Any:
            return strategy.experimental_local_results(function)[0]()

        return tf.distribute.get_replica_context().merge_call(meet, args=(function,))

    def losses_as_they_are(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context in which `tf.compat.v1.train` optimizers do not scale the loss."""
        return self._scaling_of_losses(False)

    @contextlib.contextmanager
    def _scaling_of_losses(self, is_on: bool) -> Iterator[None]:
        """Opens a context in which those optimizers divide the loss by the number of replicas, or do not.

        TensorFlow has this switch for Estimators, without a public name.
        """
        previous = self.strategy._scale_loss_for_estimator  # noqa: SLF001
        self.strategy._scale_loss_for_estimator = is_on  # noqa: SLF001
        try:
            yield
        finally:
            self.strategy._scale_loss_for_estimator = previous  # noqa: SLF001

    def components(self, variable: Any) -> tuple[Any, ...]:
        """Returns the variable of each replica, or the only variable."""
        is_distributed = isinstance(variable, tf.distribute.DistributedValues)
        return tuple(variable.values) if is_distributed else (variable,)

    def update_by_sums(self, updates: Sequence[GradientUpdate], counter: Any) -> tf.Operation:
        """Returns the op that updates each variable by the sum of all replicas' gradients.

        All replicas take part: each calls it, and each component is updated on its own device.
        """
        variables = [variable for _, variable, _ in updates]
        functions = [update for _, _, update in updates]

        def meet(strategy: Any, gradients: Sequence[Any]) -> tf.Operation:
            totals = strategy.extended.batch_reduce_to(
                tf.distribute.ReduceOp.SUM, list(zip(gradients, variables, strict=True))
            )
            done = [
                strategy.extended.update(variable, update, (total,))
                for variable, update, total in zip(variables, functions, totals, strict=True)
            ]
            with tf.control_dependencies(done):
                return tf.group(strategy.extended.update(counter, lambda c: c.assign_add(1)))

        gradients = [gradient for gradient, _, _ in updates]
        return tf.distribute.get_replica_context().merge_call(meet, args=(gradients,))


def _with_all_cpus(session_config: Any) -> Any:
    """Returns the session configuration with every logical CPU device.

    By default a session sees one, and soft placement would put all replicas on it; an all-reduce between
    replicas on the same device waits for ever.
    """
    config = tf1.ConfigProto()
    if session_config is not None:
        config.CopyFrom(session_config)
    else:
        config.allow_soft_placement = True
    if "CPU" not in config.device_count:
        config.device_count["CPU"] = len(tf.config.list_logical_devices("CPU"))
    return config


def _combined(specs: Sequence[EstimatorSpec]) -> EstimatorSpec:
    first = specs[0]
    changes: dict[str, Any] = {"scaffold": _combined_scaffold([spec.scaffold for spec in specs])}
    if first.loss is not None:
        changes["loss"] = _reported_loss([spec.loss for spec in specs])
    if first.mode == ModeKeys.TRAIN:
        changes["train_op"] = tf.group(*(spec.train_op for spec in specs))
    if first.eval_metric_ops:
        # Reading a metric's value sums over the replicas; each replica updates its own variables.
        changes["eval_metric_ops"] = {
            name: (value, tf.group(*(spec.eval_metric_ops[name][1] for spec in specs)))
            for name, (value, _) in first.eval_metric_ops.items()
        }
    return first._replace(**changes)


def is_loss_scaled() -> bool:
    """Returns whether a `tf.compat.v1.train` optimizer in the graph divides the loss by the replica count.

    The optimizer records it in the graph, without a public name.
    """
    return getattr(tf1.get_default_graph(), "_is_loss_scaled_by_optimizer", False)


def _reported_loss(losses: Sequence[Any]) -> Any:
    """Returns the loss to log: the sum, or the mean if the optimizer divides it by the number of replicas.

    The optimizers of `tf.compat.v1.train` scale the loss down by the number of replicas, and record it in the
    graph; with all others, each loss is treated as the replica's share of the total loss.
    """
    total = tf.add_n(list(losses))
    if is_loss_scaled():
        return total / len(losses)
    return total


def _combined_scaffold(scaffolds: Sequence[Any]) -> Any:
    """Returns a Scaffold that combines the initialization of all replicas, with the first one's saver."""

    def grouped(ops: Iterable[Any]) -> Any:
        present = [op for op in ops if op is not None]
        return tf.group(*present) if present else None

    def concatenated(tensors: Iterable[Any]) -> Any:
        present = [tensor for tensor in tensors if tensor is not None]
        return tf.concat(present, axis=0) if present else None

    init_fns = [scaffold.init_fn for scaffold in scaffolds if scaffold.init_fn is not None]

    def init_fn(_: Any, session: Any) -> None:
        for function in init_fns:
            function(session)

    def united(feeds: Iterable[Any]) -> Any:
        return {tensor: value for feed in feeds for tensor, value in (feed or {}).items()} or None

    return tf1.train.Scaffold(
        init_op=grouped(scaffold.init_op for scaffold in scaffolds),
        init_feed_dict=united(scaffold.init_feed_dict for scaffold in scaffolds),
        init_fn=init_fn if init_fns else None,
        ready_op=concatenated(scaffold.ready_op for scaffold in scaffolds),
        ready_for_local_init_op=concatenated(s.ready_for_local_init_op for s in scaffolds),
        local_init_op=grouped(scaffold.local_init_op for scaffold in scaffolds),
        local_init_feed_dict=united(scaffold.local_init_feed_dict for scaffold in scaffolds),
        summary_op=scaffolds[0].summary_op,
        saver=scaffolds[0].saver,
    )
