"""Training with parameter servers: each worker makes its own steps on shared variables."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.cluster import CHIEF, MASTER, WORKER, Cluster
from estimator_core.execution.base import Execution, Step, StepFn
from estimator_core.execution.cluster.chief_model import ChiefModel, Model
from estimator_core.execution.cluster.server import Task, answers, wait_for_tasks
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.single_device import SingleDevice
from estimator_core.logs import logger
from estimator_core.spec.types import InputFn

_OWN_SERVER_SECS = 10.0  # this task's server runs in this process and was started before
_LOOK_EVERY_SECS = 2  # seconds between checks that the chief has initialized the variables
_COMPARE_EVERY_SECS = 10.0  # seconds between comparisons of this task's model with the chief's
# Seconds for which the chief's model may differ from a worker's: a chief that is about to train the next
# model, or that is being replaced, still publishes the previous one.
_OTHER_MODEL_SECS = 60.0


class ParameterServers(Execution):
    """Runs one copy of the model in this task of a cluster, on variables that all tasks share.

    Each training task builds the same graph (between-graph replication) and makes its steps without
    waiting for the others. Variables and mutable tables are on the parameter servers, assigned in turn in
    the order in which they are created; everything else is on the task's own devices. The chief initializes
    or restores the variables; workers wait for that.

    The server of this task must be running: `train_and_evaluate` starts it; a program that calls
    `Estimator.train` itself creates a `tf.compat.v1.train.Server` first. All tasks need a shared
    `model_dir`: each parameter server writes its own variables to the checkpoint.

    `session_config`: `ConfigProto` of the sessions; its `device_filters` select the tasks that a session
    needs.
    `device_fn`: `RunConfig.device_fn`, which places the variables; None places them on the parameter
    servers.
    `timeout_secs`: longest wait for the servers of other tasks, and of a worker for the chief; None waits
    for ever.
    `input_context`: `tf.distribute.InputContext` for an input_fn that takes one; None gives it None.

    Source: between-graph replication of `tf.estimator`, by `tf.compat.v1.train.replica_device_setter`.
    Two differences: if a cluster does not form, the error names the missing tasks, also on the chief; and
    training tasks without parameter servers are refused: in 2.15 the chief then trained alone, and the
    workers waited for it until they timed out.
    """

    def __init__(
        self,
        cluster: Cluster,
        master: str,
        session_config: Any = None,
        device_fn: Callable[[Any], str] | None = None,
        timeout_secs: float | None = 7200,
        input_context: Any = None,
    ):
        if cluster.task_type not in (CHIEF, MASTER, WORKER):
            raise ValueError(
                f"A task of type {cluster.task_type!r} does not train: call train_and_evaluate, which "
                f"gives each task its work. Received: task {cluster.task_id} of {cluster.tasks}"
            )
        self.is_chief = cluster.is_chief
        self._cluster = cluster
        self._master = master
        self._session_config = session_config
        self._timeout_secs = math.inf if timeout_secs is None else timeout_secs
        self._own = Task(cluster.task_type, cluster.task_id, cluster.address)
        kinds = (CHIEF, MASTER) if cluster.has_chief else (WORKER,)
        self._chief = next(task for task in _tasks(cluster) if task.kind in kinds)
        self._chief_model = ChiefModel(self._chief, self._own, master)
        self._here = SingleDevice(session_config, master)
        self._arguments_of_input_fn = () if input_context is None else (input_context,)
        self._device_setter = None if device_fn else replica_device_setter(cluster)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context that places variables on the parameter servers, and the rest on this task."""
        if self._device_setter is None:  # tf.device(None) would disable device_fn
            return contextlib.nullcontext()
        return tf1.device(self._device_setter)

    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns the inputs; the input pipeline is placed on this task's CPU."""
        call = functools.partial(input_fn, *self._arguments_of_input_fn)
        return self._here.make_inputs(call, mode)

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        return self._here.build_step(inputs, step_fn, mode)

    def session_creator(
        self, scaffold: Any, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns the creator of a session: the chief's restores the variables, a worker's waits for that."""
        needed = _needed_tasks(self._cluster, self._session_config)
        if self.is_chief:
            creator = self._here.session_creator(
                scaffold, checkpoint_dir=checkpoint_dir, checkpoint_path=checkpoint_path
            )
            creator = _ChiefSession(creator, self._chief_model)
        else:
            creator = _WorkerSession(
                scaffold,
                self._master,
                self._session_config,
                self._chief,
                self._chief_model,
                self._timeout_secs,
            )
        return _SessionInCluster(creator, self._own, needed, self._timeout_secs)

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """Opens the context of a training; at its end, the chief's published model is removed."""
        try:
            yield
        finally:
            if self.is_chief:
                self._chief_model.take_back()


class _SessionInCluster(tf1.train.SessionCreator):
    """Creates a session once the servers that it needs answer."""

    def __init__(self, creator: Any, own: Task, needed: list[Task], timeout_secs: float):
        self._creator = creator
        self._own = own
        self._needed = needed
        self._timeout_secs = timeout_secs

    def create_session(self) -> Any:
        try:
            wait_for_tasks([self._own], min(_OWN_SERVER_SECS, self._timeout_secs))
        except tf.errors.DeadlineExceededError as error:
            raise tf.errors.DeadlineExceededError(
                None,
                None,
                f"No server answers for this task itself, {self._own}: start one with "
                "tf.compat.v1.train.Server before Estimator.train, or call train_and_evaluate, which "
                "does so.",
            ) from error
        wait_for_tasks(self._needed, self._timeout_secs)
        return self._creator.create_session()


class _ChiefSession(tf1.train.SessionCreator):
    """Publishes the chief's model to the workers, and then creates its session."""

    def __init__(self, creator: Any, chief_model: ChiefModel):
        self._creator = creator
        self._chief_model = chief_model

    def create_session(self) -> Any:
        self._chief_model.publish(Model.from_graph(tf1.get_default_graph()))
        return self._creator.create_session()


class _WorkerSession(tf1.train.SessionCreator):
    """Creates a session once the chief has initialized the variables.

    Like TensorFlow's `WorkerSessionCreator`, but it checks more often: there, a worker that starts a
    moment before the chief, or whose parameter server was restarted, sleeps for 30 seconds. A worker with
    another model is refused: it would wait in vain, or change variables that belong to another model.
    """

    def __init__(
        self,
        scaffold: Any,
        master: str,
        session_config: Any,
        chief: Task,
        chief_model: ChiefModel,
        timeout_secs: float,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._scaffold = scaffold
        self._master = master
        self._session_config = session_config
        self._chief = chief
        self._chief_model = chief_model
        self._timeout_secs = timeout_secs
        self._clock = clock

    def create_session(self) -> Any:
        self._scaffold.finalize()
        manager = tf1.train.SessionManager(
            local_init_op=self._scaffold.local_init_op,
            local_init_feed_dict=self._scaffold.local_init_feed_dict,
            ready_op=self._scaffold.ready_op,
            ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
            recovery_wait_secs=_LOOK_EVERY_SECS,
        )
        own = Model.from_graph(tf1.get_default_graph())
        start = self._clock()
        differs_since = None
        while True:
            now = self._clock()
            chiefs = self._chief_model.read()
            why_not = None if chiefs is None else own.why_not_equal(chiefs)
            if why_not is None:
                differs_since = None
                try:
                    return manager.wait_for_session(
                        self._master,
                        config=self._session_config,
                        max_wait_secs=min(_COMPARE_EVERY_SECS, self._timeout_secs),
                    )
                except tf.errors.DeadlineExceededError as error:
                    if self._clock() - start >= self._timeout_secs:
                        chief_answers = answers(self._chief.address)
                        raise tf.errors.DeadlineExceededError(
                            None,
                            None,
                            "The chief has not initialized the variables within "
                            f"{self._timeout_secs:g} s. The server of {self._chief} "
                            f"{'answers' if chief_answers else 'does not answer'}. {error.message}",
                        ) from error
                    continue
            if differs_since is None:
                differs_since = now
                logger.warning("This worker can't train with the chief. %s", why_not)
            if now - differs_since >= min(_OTHER_MODEL_SECS, self._timeout_secs):
                raise ValueError(
                    f"{why_not} model_fn, its settings and TensorFlow must be the same in all tasks: deploy "
                    f"them together. The chief is {self._chief}."
                )
            time.sleep(_LOOK_EVERY_SECS)


def replica_device_setter(cluster: Cluster) -> Any:
    """Returns the function that places variables on parameter servers in turn, and the rest on this task."""
    return tf1.train.replica_device_setter(
        worker_device=f"/job:{cluster.task_type}/task:{cluster.task_id}", cluster=cluster.spec
    )


def _tasks(cluster: Cluster) -> list[Task]:
    return [
        Task(kind, index, address)
        for kind, addresses in cluster.tasks.items()
        for index, address in enumerate(addresses)
    ]


def _needed_tasks(cluster: Cluster, session_config: Any) -> list[Task]:
    """Returns the tasks that a session connects to: all, or those that its device filters name."""
    tasks = _tasks(cluster)
    filters = [] if session_config is None else list(session_config.device_filters)
    if not filters:
        return tasks
    named = [tf.DeviceSpec.from_string(device_filter) for device_filter in filters]
    return [
        task
        for task in tasks
        if any(device.job in (None, task.kind) and device.task in (None, task.index) for device in named)
    ]
