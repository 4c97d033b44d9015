"""Trains with a trainer_fn in a cluster of processes on this machine."""

import contextlib
import dataclasses
import json
import logging

from components.trainer.cluster_task import ClusterTask
from components.trainer.task_failure import TaskFailedError
from components.trainer.task_logs import shown_here
from estimator_core import RunConfig
from estimator_core.experimental import LocalClusterError, launch_local_cluster

_LOGGER = logging.getLogger(__name__)

LOGS_DIR = "logs"
_GRACE_SECS = 30.0  # for the chief to save a checkpoint when the training is interrupted


@dataclasses.dataclass(frozen=True)
class LocalCluster:
    """Tasks that train together with the chief, each in its own process on this machine.

    Every process imports the user's module and calls its trainer_fn, so each needs memory for both.

    Args:
        workers: Number of workers in addition to the chief, which trains, too.
        ps: Number of parameter servers, which hold the variables.
        evaluator: True if a separate process evaluates and exports checkpoints while the others
            train. Otherwise both happen once, after the training.

    Raises:
        ValueError: A number is too small.

    Example:
        trainer = Trainer(..., cluster=LocalCluster(workers=2, ps=1, evaluator=True))
    """

    workers: int
    ps: int = 1
    evaluator: bool = False

    def __post_init__(self) -> None:
        for name in ("workers", "ps"):
            number = getattr(self, name)
            if number < 1:
                raise ValueError(
                    f"A LocalCluster needs at least one of {name}; to train in one process, leave "
                    f"`cluster` out. Received: {name}={number}"
                )

    def to_json(self) -> str:
        """Returns the cluster as JSON, for an execution property."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "LocalCluster | None":
        """Returns the cluster of `to_json`'s text; None for no text."""
        return cls(**json.loads(text)) if text else None


def train_in_cluster(cluster: LocalCluster, task: ClusterTask, log_dir: str | None) -> None:
    """Trains in a cluster of processes and returns when all tasks have ended.

    The log files of the tasks in `log_dir` are appended to. Without it, the logs go to stderr, each
    line prefixed with the name of the task.
    """
    config = RunConfig()
    if config.cluster_spec.as_dict() or config.task_type != "worker":
        raise ValueError(
            "The Trainer starts its own cluster, but TF_CONFIG makes this process a task of "
            "another cluster. Unset TF_CONFIG, or leave `cluster` out. "
            f"Received: task_type={config.task_type!r}, cluster={cluster}"
        )
    _LOGGER.info(
        "Training in separate processes: a chief, workers: %d, parameter servers: %d, "
        "evaluators: %d. The log of each task is in %s",
        cluster.workers,
        cluster.ps,
        cluster.evaluator,
        log_dir or "this log",
    )
    try:
        with shown_here(log_dir) if log_dir else contextlib.nullcontext():
            launch_local_cluster(
                task,
                num_workers=cluster.workers + 1,  # the chief is one of them
                num_ps=cluster.ps,
                evaluator=cluster.evaluator,
                log_dir=log_dir,
                grace_secs=_GRACE_SECS,
            )
        return
    except LocalClusterError as error:
        failed = error
    if not isinstance(failed.__cause__, TaskFailedError):
        raise failed
    _LOGGER.error("%s failed. Its traceback:\n\n%s", failed.task, failed.__cause__.text)
    raise failed.__cause__.error()
