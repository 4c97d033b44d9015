"""Starting the TensorFlow server of a cluster's task, and checking that other tasks' servers answer."""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.cluster import CHIEF, MASTER, WORKER, Cluster
from estimator_core.logs import logger

_LOG_EVERY_SECS = 30.0
_POLL_SECS = 0.5
_PROBE_SECS = 2.0  # for a connection, which a running host accepts or refuses immediately

_started: dict[tuple[Any, ...], Any] = {}  # TensorFlow has no way to stop a server


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of a cluster."""

    kind: str
    index: int
    address: str

    def __str__(self) -> str:
        return f"{self.kind} {self.index} at {self.address}"


def start_server(cluster: Cluster, protocol: str | None = None, session_config: Any = None) -> Any:
    """Starts and returns the server of this task; a second call in a process returns the same server."""
    task = Task(cluster.task_type, cluster.task_id, cluster.address)
    key = (task, protocol, tuple(sorted(cluster.tasks.items())))
    if key in _started:
        return _started[key]
    config = tf1.ConfigProto()
    if session_config is not None:
        config.gpu_options.CopyFrom(session_config.gpu_options)
        leader = session_config.experimental.collective_group_leader
        config.experimental.collective_group_leader = leader
    logger.info("Start TensorFlow server: %s.", task)
    try:
        _started[key] = tf1.train.Server(
            cluster.spec, job_name=task.kind, task_index=task.index, protocol=protocol, config=config
        )
    except tf.errors.OpError as error:
        reason = error.message
        port = _split(task.address)[1]
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError as refused:
                reason = f"port {port} can't be opened on this host ({refused.strerror})."
        raise RuntimeError(
            f"The server of {task} can't be started: {reason} Free the port, or "
            "name another port in the TF_CONFIG of every task."
        ) from error
    return _started[key]


def wait_for_tasks(
    tasks: Sequence[Task],
    timeout_secs: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until something listens at the address of every task."""
    start = clock()
    log_at = start + _LOG_EVERY_SECS
    missing = [task for task in tasks if not answers(task.address)]
    while missing:
        if clock() - start >= timeout_secs:
            raise tf.errors.DeadlineExceededError(
                None,
                None,
                f"The cluster is not complete after {timeout_secs:g} s. No server answers for: "
                f"{_listed(missing)}. Start these tasks, or correct their addresses in TF_CONFIG; "
                "RunConfig.session_creation_timeout_secs limits the time that a task waits for the others.",
            )
        if clock() >= log_at:
            logger.info("Waiting for the servers of: %s.", _listed(missing))
            log_at += _LOG_EVERY_SECS
        sleep(_POLL_SECS)
        missing = [task for task in missing if not answers(task.address)]


def tasks_that_train_answer(cluster: Cluster) -> bool:
    """Returns whether the server of any chief, master or worker answers; checks all in parallel."""
    addresses = [address for kind in (CHIEF, MASTER, WORKER) for address in cluster.tasks.get(kind, ())]
    with ThreadPoolExecutor(max(len(addresses), 1)) as threads:
        return any(threads.map(answers, addresses))


def answers(address: str) -> bool:
    """Returns whether something listens at the address, "host:port"."""
    try:
        socket.create_connection(_split(address), _PROBE_SECS).close()
    except OSError:
        return False
    return True


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ValueError(f"The address of a task must be host:port. Received: {address!r}")
    return host.strip("[]"), int(port)


def _listed(tasks: Sequence[Task]) -> str:
    return ", ".join(map(str, tasks))
