"""Selecting the Execution for a RunConfig: the only place that chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.cluster import EVALUATOR, PS, Cluster
from estimator_core.execution.base import Execution
from estimator_core.execution.cluster.server import start_server
from estimator_core.execution.loops.in_graph_loop import ManySteps
from estimator_core.execution.parameter_server import ParameterServers
from estimator_core.execution.sharded import Sharded
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync
from estimator_core.execution.workers_in_sync import WorkersInSync, check_cluster, start_server_in_step
from estimator_core.run_config import AUTO, RunConfig
from estimator_core.spec.mode_keys import ModeKeys

_NAMES = {ModeKeys.TRAIN: "train_distribute", ModeKeys.EVAL: "eval_distribute"}
_MOST_STEPS = 1000
_CALL_SECS = 0.2  # timed hooks and SIGTERM are checked after each call

_IN_SYNC = (
    tf.distribute.MirroredStrategy,
    tf.distribute.OneDeviceStrategy,
    tf1.distribute.MirroredStrategy,
    tf1.distribute.OneDeviceStrategy,
    tf.distribute.experimental.CentralStorageStrategy,
    tf1.distribute.experimental.CentralStorageStrategy,
)
_ACROSS_TASKS = (
    tf.distribute.MultiWorkerMirroredStrategy,
    tf1.distribute.experimental.MultiWorkerMirroredStrategy,
)
_PARAMETER_SERVERS = tf1.distribute.experimental.ParameterServerStrategy
_STRATEGIES = (*_IN_SYNC, *_ACROSS_TASKS, _PARAMETER_SERVERS)


def select_execution(config: RunConfig, mode: str) -> Execution:
    """Returns the Execution that runs `mode` under `config`."""
    _check(config, mode)
    sharding = config.sharding(mode)
    if sharding is not None:
        return Sharded(sharding, config.session_config)
    strategy = _strategy(config, mode)
    if config.is_distributed and mode == ModeKeys.TRAIN:
        return _training_in_cluster(strategy, config)
    if strategy:
        many_steps = _many_steps(config) if mode == ModeKeys.TRAIN else None
        return ReplicasInSync(strategy, config.session_config, many_steps)
    master = config.evaluation_master if mode == ModeKeys.EVAL else config.master
    many_steps = None if mode == ModeKeys.PREDICT else _many_steps(config)
    jit_compile = config.jit_compile if mode == ModeKeys.TRAIN else False
    return SingleDevice(config.session_config, master, many_steps, jit_compile)


def check_training(config: RunConfig) -> None:
    """Checks that training is possible as configured, for tasks that would wait for others to train."""
    _check(config, ModeKeys.TRAIN)


def start_task_server(config: RunConfig) -> None:
    """Starts this task's server as needed for the configured way of training."""
    strategy = _strategy(config, ModeKeys.TRAIN)
    if isinstance(strategy, _ACROSS_TASKS):
        start_server_in_step(strategy, config.task_cluster, config.protocol, config.session_config)
    else:
        start_server(config.task_cluster, config.protocol, config.session_config)


def _many_steps(config: RunConfig) -> ManySteps:
    """Returns the limits on the steps of a session call."""
    if config.steps_per_session_run == AUTO:
        return ManySteps(_MOST_STEPS, _CALL_SECS)
    return ManySteps(int(config.steps_per_session_run))


def _check_can_be_compiled(config: RunConfig) -> None:
    """Checks that, with jit_compile=True, training is on one device with several steps in a session call."""
    if config.jit_compile is not True:
        return
    if config.steps_per_session_run == 1:
        raise ValueError(
            "jit_compile=True compiles all steps of a session call but the last, so none with "
            "steps_per_session_run=1: leave steps_per_session_run out, or set jit_compile to 'auto'. "
            "Received: jit_compile=True, steps_per_session_run=1"
        )
    tasks = config.task_cluster.training_tasks
    if _has_several(tasks) or config.trains_by_strategy or config.sharding(ModeKeys.TRAIN):
        raise ValueError(
            "jit_compile=True is for training on one device, not for a cluster, a tf.distribute strategy or "
            "shards: set jit_compile to 'auto' or False. Received: jit_compile=True, "
            f"train_distribute={config.train_distribute!r}, cluster={_listed(tasks)}"
        )


def _strategy(config: RunConfig, mode: str) -> Any:
    """Returns the `tf.distribute` strategy of a mode, or None."""
    name = _NAMES.get(mode)
    return name and (getattr(config, name) or getattr(config.experimental_distribute, name, None))


def _check(config: RunConfig, mode: str) -> None:
    """Checks that a mode can run as configured, in this task and in the others of a cluster."""
    remote_cluster = getattr(config.experimental_distribute, "remote_cluster", None)
    if remote_cluster:
        raise ValueError(
            "One client can't train in a remote cluster: leave remote_cluster out of "
            "RunConfig.experimental_distribute, and start the program once in each task, with the cluster in "
            f"its TF_CONFIG. Received: remote_cluster={remote_cluster!r}"
        )
    name, strategy = _NAMES.get(mode), _strategy(config, mode)
    if strategy and not isinstance(strategy, _STRATEGIES):
        raise ValueError(
            f"{name} can be a tf.distribute MirroredStrategy, OneDeviceStrategy, CentralStorageStrategy or "
            "MultiWorkerMirroredStrategy, or a tf.compat.v1.distribute.experimental.ParameterServerStrategy. "
            f"Leave it out to run on one device. Received: {name}={strategy!r}"
        )
    if mode == ModeKeys.TRAIN:
        _check_can_be_compiled(config)
        if _has_several(config.task_cluster.training_tasks):
            _check_training_in_cluster(strategy, config.task_cluster)
    across_tasks = (*_ACROSS_TASKS, _PARAMETER_SERVERS)
    if mode == ModeKeys.EVAL and config.is_distributed and isinstance(strategy, across_tasks):
        raise ValueError(
            "The tasks of a cluster can't evaluate together: leave eval_distribute out to evaluate on one "
            "device, or give it a tf.distribute.MirroredStrategy of the task that evaluates. Received: "
            f"eval_distribute={strategy!r}, cluster={_listed(config.task_cluster.tasks)}"
        )


def _check_training_in_cluster(strategy: Any, cluster: Cluster) -> None:
    """Checks that the tasks of a cluster can train together.

    An evaluator needs no strategy, so it can't tell that the tasks that train lack one. A task sees its own
    devices only, so those of an evaluator or a parameter server do not count.
    """
    tasks = cluster.training_tasks
    if isinstance(strategy, _IN_SYNC):
        raise ValueError(
            f"A {type(strategy).__name__} can't train in a cluster: give train_distribute a "
            "tf.distribute.MultiWorkerMirroredStrategy to train in step, leave it out to train with "
            "parameter servers, or unset TF_CONFIG to train in this process. "
            f"Received: train_distribute={strategy!r}, cluster={_listed(tasks)}"
        )
    if isinstance(strategy, _ACROSS_TASKS):
        check_cluster(strategy, cluster)
        return
    if not tasks.get(PS) and (strategy or cluster.task_type != EVALUATOR):
        raise ValueError(
            "TF_CONFIG describes a cluster of several tasks that train, without a parameter server "
            'to keep the variables: add "ps": ["host:port"] to its `cluster` and start that task, '
            "give RunConfig a tf.distribute.MultiWorkerMirroredStrategy as train_distribute to train in "
            f"step, or leave the other workers out. Received: cluster={_listed(tasks)}"
        )
    trains = cluster.task_type not in (EVALUATOR, PS)
    if trains and strategy and strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "With parameter servers, each task trains on one device: let each see one GPU "
            "(CUDA_VISIBLE_DEVICES), or start a task for each. Received: "
            f"train_distribute={strategy!r} with {strategy.num_replicas_in_sync} devices"
        )


def _training_in_cluster(strategy: Any, config: RunConfig) -> Execution:
    """Returns the Execution by which the tasks of a cluster train."""
    cluster, timeout_secs = config.task_cluster, config.session_creation_timeout_secs
    if isinstance(strategy, _ACROSS_TASKS):
        return WorkersInSync(strategy, cluster, config.session_config, timeout_secs)
    input_context = None
    if strategy:
        input_context = tf.distribute.InputContext(cluster.num_worker_replicas, cluster.global_id, 1)
    return ParameterServers(
        cluster, config.master, config.session_config, config.device_fn, timeout_secs, input_context
    )


def _has_several(tasks: Mapping[str, Sequence[str]]) -> bool:
    return sum(map(len, tasks.values())) > 1


def _listed(tasks: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {kind: list(addresses) for kind, addresses in tasks.items()}
