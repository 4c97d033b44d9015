"""From a RunConfig to the Execution that carries it out: the only place that chooses."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Execution
from estimator_core.execution.parameter_server import ParameterServers
from estimator_core.execution.server import start_server
from estimator_core.execution.sharded import Sharded
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync
from estimator_core.execution.workers_in_sync import WorkersInSync, start_server_in_step
from estimator_core.run_config import RunConfig
from estimator_core.spec.mode_keys import ModeKeys

_IN_SYNC = (
    tf.distribute.MirroredStrategy,
    tf.distribute.OneDeviceStrategy,
    tf1.distribute.MirroredStrategy,
    tf1.distribute.OneDeviceStrategy,
)
_IN_SYNC_BY_COLLECTIVES = (
    tf.distribute.MultiWorkerMirroredStrategy,
    tf1.distribute.experimental.MultiWorkerMirroredStrategy,
)


def select_execution(config: RunConfig, mode: str) -> Execution:
    """Returns how `mode` runs under `config`.

    Raises:
        ValueError: The configuration asks for a way of running that there is not.
    """
    sharding = config.sharding(mode)
    if sharding is not None:
        return Sharded(sharding, config.session_config)
    remote_cluster = getattr(config.experimental_distribute, "remote_cluster", None)
    if remote_cluster:
        raise ValueError(
            "Training in a remote cluster is not supported: leave remote_cluster out of "
            f"RunConfig.experimental_distribute. Received: remote_cluster={remote_cluster!r}"
        )
    name = {ModeKeys.TRAIN: "train_distribute", ModeKeys.EVAL: "eval_distribute"}.get(mode)
    strategy = name and (
        getattr(config, name) or getattr(config.experimental_distribute, name, None)
    )
    if isinstance(strategy, _IN_SYNC_BY_COLLECTIVES):
        return _by_collectives(strategy, config, mode)
    if strategy and not isinstance(strategy, _IN_SYNC):
        raise ValueError(
            "Only tf.distribute.MirroredStrategy and OneDeviceStrategy are supported yet; leave "
            f"train_distribute and eval_distribute out to run on one device. Received: {strategy!r}"
        )
    if strategy and config.is_distributed and mode == ModeKeys.TRAIN:
        raise ValueError(
            "A tf.distribute strategy in a cluster is not supported yet: leave train_distribute out to "
            "train with parameter servers, or unset TF_CONFIG to train in this process. Received: "
            f"{strategy!r}, cluster={config.cluster_spec.as_dict()}"
        )
    if strategy:
        return ReplicasInSync(strategy, config.session_config)
    if config.is_distributed and mode == ModeKeys.TRAIN:
        return ParameterServers(
            config.cluster,
            config.master,
            config.session_config,
            config.device_fn,
            config.session_creation_timeout_secs,
        )
    master = config.evaluation_master if mode == ModeKeys.EVAL else config.master
    return SingleDevice(config.session_config, master)


def start_task_server(config: RunConfig) -> None:
    """Starts the server of this task of a cluster, as its way of training needs it.

    Raises:
        RuntimeError: The server can't be started, as its port is taken.
    """
    strategy = config.train_distribute or getattr(
        config.experimental_distribute, "train_distribute", None
    )
    if isinstance(strategy, _IN_SYNC_BY_COLLECTIVES):
        start_server_in_step(strategy, config.cluster, config.protocol, config.session_config)
    else:
        start_server(config.cluster, config.protocol, config.session_config)


def _by_collectives(strategy: Any, config: RunConfig, mode: str) -> Execution:
    if not config.is_distributed:
        return ReplicasInSync(strategy, config.session_config)
    return WorkersInSync(
        strategy, config.cluster, config.session_config, config.session_creation_timeout_secs
    )
