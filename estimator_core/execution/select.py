"""From a RunConfig to the Execution that carries it out: the only place that chooses."""

from __future__ import annotations

from estimator_core.execution.base import Execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.mode_keys import ModeKeys
from estimator_core.run_config import RunConfig


def select_execution(config: RunConfig, mode: str) -> Execution:
    """Returns how `mode` runs under `config`.

    Raises:
        ValueError: The configuration asks for a way of running that there is not.
    """
    strategies = {ModeKeys.TRAIN: "train_distribute", ModeKeys.EVAL: "eval_distribute"}
    for name in (strategies.get(mode), "experimental_distribute"):
        if name is not None and getattr(config, name) is not None:
            raise ValueError(
                f"RunConfig.{name} is set, and no tf.distribute.Strategy is supported yet: leave it out to "
                f"run on a single device. Received: {name}={getattr(config, name)!r}"
            )
    if mode == ModeKeys.TRAIN and config.cluster.is_distributed:
        raise ValueError(
            "TF_CONFIG describes a cluster of several tasks, and distributed training is not supported "
            "yet: unset TF_CONFIG to train in this process. Received: "
            f"cluster={config.cluster_spec.as_dict()}"
        )
    return SingleDevice(config.session_config)
