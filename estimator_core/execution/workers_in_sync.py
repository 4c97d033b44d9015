"""Replicas in several processes by `tf.distribute`: workers with their own batches and all variables."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.latest import latest_checkpoint
from estimator_core.cluster import CHIEF, EVALUATOR, WORKER, Cluster
from estimator_core.execution.base import Step, StepFn
from estimator_core.execution.cluster.collectives import AVERAGES, LOSS, Peers, TaskLostError, Watch
from estimator_core.execution.cluster.inputs_in_step import InputsInStep, changed_by_batches
from estimator_core.execution.cluster.server import Task, start_server, wait_for_tasks
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.strategy import ReplicasInSync, is_loss_scaled
from estimator_core.spec.types import InputFn

_SAME_CHECKPOINT_ROUNDS = 60
_ROUND_SECS = 1.0
_OWN_SERVER_SECS = 10.0  # this task's server runs in this process and was started before


class WorkersInSync(ReplicasInSync):
    """Trains a copy of the model in each worker of a cluster, all in step, on their own batches.

    Each worker calls input_fn once and has its own copy of the variables. A step updates them with the sum
    of all workers' gradients, so the copies stay equal. Training ends in all tasks at the same step: when the
    first input ends, or when one of the tasks stops.

    The chief (worker 0 if the cluster has no chief) writes checkpoints and summaries. All tasks restore the
    same checkpoint, so they need a shared `model_dir`.

    `session_config`: `ConfigProto` of the sessions; its device filters are replaced.
    `timeout_secs`: longest wait for the other tasks; None waits for ever.

    Source: `train_distribute` of `tf.estimator.RunConfig` in a cluster. The end of training differs: in
    2.15 the others waited for ever for a worker whose input had ended, or that was gone.
    """

    def __init__(
        self, strategy: Any, cluster: Cluster, session_config: Any = None, timeout_secs: float | None = 7200
    ):
        super().__init__(strategy, session_config)
        self._peers = _peers(cluster)
        self._master = f"grpc://{cluster.address}"
        self._session_config = _with_collectives(strategy, session_config)
        self._timeout_secs = 0 if timeout_secs is None else timeout_secs
        self._watch = Watch(self._peers)
        self.is_chief = cluster.is_chief
        self.num_tasks_in_step = len(self._peers.tasks)

    @property
    def num_models(self) -> int:
        """Copies of the model in this process."""
        return len(self.strategy.extended.worker_devices)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the strategy's scope, in which each variable always has the same value in all workers."""
        contexts = contextlib.ExitStack()
        contexts.enter_context(super().scope())
        contexts.enter_context(tf.variable_creator_scope(_in_sync))
        return contexts

    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns the iterator over this worker's input pipeline, which ends when any worker's does."""
        # Let hooks read the global step of this task: TensorFlow's own read for hooks also reads the initial
        # value, which needs all tasks.
        read = "global_step_read_op_cache"  # where TensorFlow looks for it, without a public name
        if not tf1.get_collection(read):
            tf1.add_to_collection(read, tf.identity(tf1.train.get_global_step()))
        peers = self._peers
        context = tf.distribute.InputContext(len(peers.tasks), peers.index, self.num_replicas)
        with tf1.device(peers.device):
            dataset = self._dataset(input_fn, context)
            return InputsInStep(dataset, mode, peers, self._watch)

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the step of all workers' replicas together, with their common loss."""
        assert isinstance(inputs, InputsInStep)
        spec = super().build_step(inputs, step_fn, mode).spec
        total = self._peers.sum(spec.loss, LOSS)
        if is_loss_scaled():
            total /= len(self._peers.tasks)
        train_op = self._with_averages(inputs, spec.train_op)
        # Each step must run the same sums in every task, regardless of its hooks' fetches: a task with one
        # sum less or more than the others would make them wait for ever.
        sums = [
            operation
            for operation in tf1.get_default_graph().get_operations()
            if operation.type.startswith(("CollectiveReduce", "CollectiveGather"))
        ]
        inputs.train_op = train_op = tf.group(train_op, *sums)
        return Step(spec._replace(loss=total, train_op=train_op))

    def _with_averages(self, inputs: InputsInStep, train_op: Any) -> tf.Operation:
        """Returns the step followed by averaging the variables that each task updates from its own batch."""
        variables = changed_by_batches(tf1.global_variables(), self.components, inputs.batches)
        count = len(self._peers.tasks) * self.num_models
        done = [train_op]
        for number, variable in enumerate(variables):
            parts = self.components(variable)
            with tf.control_dependencies([train_op]):
                total = tf.add_n([part.read_value() for part in parts])
            average = self._peers.sum(total, AVERAGES + number) / count
            done += [part.assign(average, read_value=False) for part in parts]
        return tf.group(*done)

    def session_creator(
        self, scaffold: Any, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns the creator of a session on this task's server, which waits for all tasks."""
        creator = tf1.train.ChiefSessionCreator(
            scaffold=scaffold,
            master=self._master,
            config=self._session_config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_path,
        )

        def find_checkpoint() -> str | None:
            return latest_checkpoint(checkpoint_dir) if checkpoint_dir else checkpoint_path

        return SessionInStep(creator, self._peers, self._meet, find_checkpoint, self._timeout_secs)

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """Watches the other tasks, and at the end waits for the chief's last checkpoint."""
        with self._watch.naming_the_lost(), self._watch:
            yield
        self._meet()

    def _meet(self, graph: int = 0, checkpoint: int = 0) -> Any:
        numbers = (graph, checkpoint)
        return self._peers.gather(numbers, self._master, self._session_config, self._timeout_secs)


class SessionInStep(tf1.train.SessionCreator):
    """Creates the session of each task from the same state, or fails in all of them.

    `find_checkpoint`: function that returns the checkpoint to restore, or None to initialize the variables.
    `timeout_secs`: longest wait for the servers of the others; 0 waits for ever.
    """

    def __init__(
        self,
        creator: Any,
        peers: Peers,
        meet: Callable[..., Any],
        find_checkpoint: Callable[[], str | None],
        timeout_secs: float,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._creator = creator
        self._peers = peers
        self._meet = meet
        self._find_checkpoint = find_checkpoint
        self._timeout_secs = timeout_secs or float("inf")
        self._sleep = sleep
        self._was_created = False

    def create_session(self) -> Any:
        own, others = self._peers.own, self._peers.others
        try:
            wait_for_tasks([own], min(_OWN_SERVER_SECS, self._timeout_secs))
        except tf.errors.DeadlineExceededError as error:
            raise RuntimeError(
                f"No server answers for this task itself, {own}: call train_and_evaluate, which starts it, "
                "or do not disable eager execution before the strategy is made, which then starts it."
            ) from error
        if self._was_created:
            raise TaskLostError(
                f"{own} has lost its connection to the other tasks, and can't continue without them: "
                "all tasks train in step. Start all tasks again; training continues from the newest "
                "checkpoint. "
                f"The other tasks: {', '.join(map(str, others))}"
            )
        wait_for_tasks(others, self._timeout_secs)
        self.agree()
        self._was_created = True
        session = self._creator.create_session()
        self._meet()  # from here on the chief may write checkpoints
        return session

    def agree(self) -> None:
        """Waits until all tasks find the same checkpoint."""
        graph = _fingerprint(tf1.get_default_graph())
        for _ in range(_SAME_CHECKPOINT_ROUNDS):
            path = self._find_checkpoint()
            checksum = 0 if path is None else zlib.crc32(path.rpartition("/")[2].encode())
            rows = self._meet(graph, checksum)
            self._refuse_difference(
                rows[:, 0],
                "The model of these tasks differs from that of the first: {}. model_fn, hooks and their "
                "settings must be the same in all tasks. Deploy all tasks together.",
            )
            if len(set(rows[:, 1])) == 1:
                return
            self._sleep(_ROUND_SECS)  # the chief may just be writing it
        self._refuse_difference(
            rows[:, 1],
            "These tasks do not find the checkpoint that the first finds: {}. All tasks need a model_dir "
            f"that they share. Received: {path!r} in {self._peers.own}",
        )

    def _refuse_difference(self, numbers: Any, message: str) -> None:
        differ = [
            task for task, number in zip(self._peers.tasks, numbers, strict=True) if number != numbers[0]
        ]
        if differ:
            raise ValueError(message.format(", ".join(map(str, differ))))


def start_server_in_step(
    strategy: Any, cluster: Cluster, protocol: str | None = None, session_config: Any = None
) -> None:
    """Starts the server of this task unless the strategy has started it, as it does in eager mode."""
    # There is no public way to ask the strategy.
    if not getattr(strategy.extended, "_std_server_started", False):
        start_server(cluster, protocol, _with_collectives(strategy, session_config))


def check_cluster(strategy: Any, cluster: Cluster) -> None:
    """Checks that the tasks of the cluster can train in step."""
    tasks = {kind: list(addresses) for kind, addresses in cluster.training_tasks.items()}
    if tasks.keys() - {CHIEF, WORKER}:
        raise ValueError(
            "MultiWorkerMirroredStrategy trains in a cluster of workers, with or without a chief: leave "
            f"other tasks out of TF_CONFIG's `cluster`. Received: {cluster.task_type} of {tasks}"
        )
    if cluster.task_type == EVALUATOR:  # its strategy is not one of the cluster
        return
    resolver = strategy.cluster_resolver
    own_cluster = resolver.cluster_spec().as_dict() if resolver else {}
    own_cluster.pop(EVALUATOR, None)
    if (own_cluster, resolver.task_type, resolver.task_id) != (tasks, cluster.task_type, cluster.task_id):
        raise ValueError(
            "The cluster of the MultiWorkerMirroredStrategy is not that of TF_CONFIG. Make the strategy in "
            "each task, after TF_CONFIG is set, and without a cluster_resolver of your own. Received: "
            f"{resolver.task_type} {resolver.task_id} of {own_cluster}, and in TF_CONFIG {cluster.task_type} "
            f"{cluster.task_id} of {tasks}"
        )


def _peers(cluster: Cluster) -> Peers:
    tasks = [
        Task(kind, index, address)
        for kind in (CHIEF, WORKER)
        for index, address in enumerate(cluster.tasks.get(kind, ()))
    ]
    own = Task(cluster.task_type, cluster.task_id, cluster.address)
    return Peers(tasks, tasks.index(own))


def _with_collectives(strategy: Any, session_config: Any) -> Any:
    """Returns the session configuration with this task's devices and collectives with the other tasks."""
    config = tf1.ConfigProto()
    if session_config is not None:
        config.CopyFrom(session_config)
    config.allow_soft_placement = True
    del config.device_filters[:]
    config = strategy.update_config_proto(config)
    config.isolate_session_state = True  # the variables are this session's, not the server's
    return config


def _in_sync(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
    """Creates a variable; one that is averaged when read is changed to be averaged when written.

    Reading it would need all tasks, but only the chief saves it. The mean of moving averages is the moving
    average of the means, so batch normalization keeps the same statistics.
    """
    if kwargs.get("synchronization") == tf.VariableSynchronization.ON_READ:
        aggregation = kwargs.get("aggregation")
        is_local = tf1.GraphKeys.LOCAL_VARIABLES in (kwargs.get("collections") or ())
        if aggregation == tf.VariableAggregation.MEAN:
            kwargs["synchronization"] = tf.VariableSynchronization.ON_WRITE
            kwargs["trainable"] = False
        elif aggregation == tf.VariableAggregation.SUM and not is_local:
            raise ValueError(
                "Under MultiWorkerMirroredStrategy, a variable that is saved can't be summed over the tasks "
                "when it is read: give it aggregation=tf.VariableAggregation.MEAN, or put it among the "
                f"local variables. Received: name={kwargs.get('name')!r}"
            )
    return next_creator(**kwargs)


def _fingerprint(graph: tf.Graph) -> int:
    """Returns a number that differs between graphs that would make tasks wait for each other in vain."""
    collectives = [
        (
            operation.type,
            operation.get_attr("instance_key"),
            [str(tensor.shape) for tensor in (*operation.inputs, *operation.outputs)],
        )
        for operation in graph.get_operations()
        if operation.type in ("CollectiveReduce", "CollectiveGather")
    ]
    variables = [
        (variable.name, str(variable.shape))
        for variable in graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    ]
    return zlib.crc32(repr((variables, sorted(collectives))).encode())
