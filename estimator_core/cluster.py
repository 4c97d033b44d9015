"""The tasks of a cluster, read from TF_CONFIG; no other module reads it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

CHIEF, MASTER, WORKER, PS, EVALUATOR = "chief", "master", "worker", "ps", "evaluator"
TASK_TYPES = (CHIEF, MASTER, WORKER, PS, EVALUATOR)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The tasks of a cluster, and the task that this process runs.

    `tasks`: dict of task type to the addresses ("host:port") of its tasks; empty on a single machine.
    `master`: address of the session that training opens; "" is in this process.
    `evaluation_master`: address of the session that evaluation opens; "" is in this process.
    `evaluated_tasks`: tasks of the cluster whose checkpoints an evaluator evaluates, as in `tasks`; the
    evaluator is not one of them.
    `service`: settings of a managed service, as TF_CONFIG names them, or None.

    Source: the TF_CONFIG rules of `tf.estimator.RunConfig`.
    """

    tasks: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    task_type: str = WORKER
    task_id: int = 0
    master: str = ""
    model_dir: str | None = None
    service: Mapping[str, Any] | None = None
    evaluation_master: str = ""
    evaluated_tasks: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def spec(self) -> tf.train.ClusterSpec:
        """The tasks as TensorFlow's `ClusterSpec`."""
        return tf.train.ClusterSpec({kind: list(addresses) for kind, addresses in self.tasks.items()})

    @property
    def without_evaluator(self) -> Cluster:
        """The same without an evaluator among its tasks: it takes no part in the training."""
        if EVALUATOR not in self.training_tasks:
            return self
        kept = {kind: value for kind, value in self.training_tasks.items() if kind != EVALUATOR}
        if self.tasks:
            return dataclasses.replace(self, tasks=kept)
        return dataclasses.replace(self, evaluated_tasks=kept)

    @property
    def training_tasks(self) -> Mapping[str, tuple[str, ...]]:
        """Tasks of the cluster that trains, also in its evaluator."""
        return self.tasks or self.evaluated_tasks

    @property
    def is_distributed(self) -> bool:
        """True if there are other tasks."""
        return sum(len(addresses) for addresses in self.tasks.values()) > 1

    @property
    def address(self) -> str:
        """Address ("host:port") of this task's server; "" on a single machine and for an evaluator."""
        addresses = self.tasks.get(self.task_type, ())
        return addresses[self.task_id] if addresses else ""

    @property
    def chief_address(self) -> str:
        """Address of the task that saves checkpoints; "" on a single machine."""
        for kind in (CHIEF, MASTER, WORKER):
            if self.training_tasks.get(kind):
                return self.training_tasks[kind][0]
        return ""

    @property
    def is_chief(self) -> bool:
        """True if this task initialises, saves checkpoints and writes summaries."""
        if not self.has_chief:
            return self.task_type == WORKER and self.task_id == 0
        return self.task_type in (CHIEF, MASTER)

    @property
    def has_chief(self) -> bool:
        """True if the cluster has a chief or master task; else its first worker is the chief."""
        return CHIEF in self.tasks or MASTER in self.tasks

    @property
    def num_ps_replicas(self) -> int:
        """Number of parameter servers."""
        return len(self.tasks.get(PS, ()))

    @property
    def num_worker_replicas(self) -> int:
        """Number of tasks that train: workers, chief and master."""
        if not self.tasks:
            return 1 if self.task_type == WORKER else 0
        return sum(len(self.tasks.get(kind, ())) for kind in (WORKER, CHIEF, MASTER))

    @property
    def global_id(self) -> int | None:
        """Rank among all tasks: chief, other types by name, parameter servers; None for an evaluator."""
        if self.task_type == EVALUATOR:
            return None
        others = sorted(self.tasks.keys() - {CHIEF, MASTER, PS})
        kinds = [CHIEF, MASTER, *others, PS]
        earlier_kinds = kinds[: kinds.index(self.task_type)] if self.tasks else []
        return sum(len(self.tasks.get(kind, ())) for kind in earlier_kinds) + self.task_id


def from_environment(environ: Mapping[str, str] | None = None) -> Cluster:
    """Returns the cluster that TF_CONFIG describes; a single machine when it is not set."""
    tf_config = (os.environ if environ is None else environ).get("TF_CONFIG")
    if not tf_config:
        return Cluster()
    try:
        config = json.loads(tf_config)
    except ValueError as error:
        raise ValueError(f"TF_CONFIG must be a JSON object: {error}. Received: {tf_config!r}") from error
    if not isinstance(config, dict):
        raise ValueError(f"TF_CONFIG must be a JSON object. Received: {tf_config!r}")

    cluster = _parse_cluster(config, tf_config)
    if cluster.task_type != EVALUATOR:
        cluster = dataclasses.replace(cluster, master=config.get("session_master") or cluster.master)
    if not cluster.tasks:
        evaluation_master = config.get("eval_session_master") or ""
        cluster = dataclasses.replace(cluster, evaluation_master=evaluation_master)
    return cluster


def _parse_cluster(config: Mapping[str, Any], tf_config: str) -> Cluster:
    """Returns the cluster that the tasks in TF_CONFIG's `text` describe."""
    task = config.get("task") or {}
    tasks: dict[str, tuple[str, ...]] = {}
    for kind, addresses in (config.get("cluster") or {}).items():
        if not isinstance(addresses, list) or not all(isinstance(item, str) for item in addresses):
            raise ValueError(f"TF_CONFIG's `cluster` must list addresses. Received: {kind}={addresses!r}")
        tasks[kind] = tuple(addresses)
    model_dir = config.get("model_dir")
    if model_dir == "":
        raise ValueError(
            "model_dir in TF_CONFIG should be non-empty: name a folder, or leave it out. "
            f"Received: {tf_config!r}"
        )
    service = config.get("service")
    if service is not None and not isinstance(service, dict):
        raise TypeError(f"TF_CONFIG's `service` must be a JSON object. Received: service={service!r}")
    if not tasks:
        task_type = task.get("type") or WORKER
        if task_type not in (WORKER, EVALUATOR):
            raise ValueError(
                f"TF_CONFIG without a `cluster` can't be task type {task_type!r}: describe the cluster, "
                "or leave `task` out for local training."
            )
        task_id = _task_index(task)
        if task_id:
            raise ValueError(
                f"TF_CONFIG without a `cluster` has one task, index 0. Received: index={task_id}"
            )
        return Cluster({}, task_type, task_id, model_dir=model_dir, service=service)

    for key in ("type", "index"):
        if task.get(key) is None:
            raise ValueError(
                f"TF_CONFIG with a `cluster` must name this task's `{key}`. Received: {tf_config!r}"
            )
    task_type, task_id = task["type"], _task_index(task)
    if CHIEF in tasks and MASTER in tasks:
        raise ValueError(
            f"TF_CONFIG's `cluster` must have either a {CHIEF!r} or a {MASTER!r} task, not both. "
            f"Received: {sorted(tasks)}"
        )
    for kind in (CHIEF, MASTER):
        if len(tasks.get(kind, ())) > 1:
            raise ValueError(f"There must be exactly one {kind!r} task. Received: {list(tasks[kind])}")
    if task_type == EVALUATOR and MASTER in tasks:
        raise ValueError(
            f"A {MASTER!r} task evaluates itself, so its cluster has no {EVALUATOR!r}: name the task "
            f"{CHIEF!r} to have one. Received: {tf_config!r}"
        )
    if task_type == EVALUATOR:  # in no cluster itself: it evaluates the others' checkpoints
        return Cluster({}, task_type, task_id, model_dir=model_dir, service=service, evaluated_tasks=tasks)
    if task_id >= len(tasks.get(task_type, ())):
        raise ValueError(
            f"TF_CONFIG's `cluster` has no {task_type!r} task with index {task_id}. "
            f"Received: { ({kind: list(value) for kind, value in tasks.items()}) }"
        )
    address = tasks[task_type][task_id]
    if sum(map(len, tasks.values())) == 1:
        return Cluster(tasks, task_type, task_id, "", model_dir, service)
    return Cluster(tasks, task_type, task_id, f"grpc://{address}", model_dir, service)


def _task_index(task: Mapping[str, Any]) -> int:
    try:
        index = int(task.get("index") or 0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Task index must be an integer. Received: {task!r}") from error
    if index < 0:
        raise ValueError(f"Task index must not be negative. Received: index={index}")
    return index
