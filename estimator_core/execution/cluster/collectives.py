"""Collective operations between the tasks of a cluster, and the detection of lost tasks."""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.cluster.server import Task, answers
from estimator_core.logs import logger

_GROUP_KEY = 2**30  # the strategy's own keys count up from 1
_MISSES = 2  # failed checks in a row after which a task is lost

MEETING, INPUTS, LOSS, AVERAGES = range(1, 5)
"""Purposes of collectives in a graph; averages are numbered upwards from `AVERAGES`."""


class TaskLostError(RuntimeError):
    """A task of the cluster has ended, and the others can't continue without it."""


class Peers:
    """The tasks that train in step, from the point of view of one of them."""

    def __init__(self, tasks: Sequence[Task], index: int):
        self.tasks = list(tasks)
        self.index = index
        self.own = self.tasks[index]
        self.others = [task for task in self.tasks if task is not self.own]

    @property
    def device(self) -> str:
        """The CPU of this task."""
        return f"/job:{self.own.kind}/replica:0/task:{self.own.index}/device:CPU:0"

    def sum(self, value: tf.Tensor, purpose: int) -> tf.Tensor:
        """Returns the sum of a value over all tasks, each of which must run it equally often."""
        with tf1.device(self.device):
            return tf.raw_ops.CollectiveReduce(
                input=value, merge_op="Add", final_op="Id", subdiv_offsets=[0], **self._keys(purpose, value)
            )

    def concat(self, value: tf.Tensor, purpose: int, timeout_secs: float = 0) -> tf.Tensor:
        """Returns the concatenated values of all tasks, each of which must run it equally often.

        `value`: tensor of the same shape, [1, ...], and dtype in all tasks.
        `timeout_secs`: longest wait for the others; 0 waits for ever.
        """
        with tf1.device(self.device):
            return tf.raw_ops.CollectiveGather(
                input=value,
                shape=[len(self.tasks), *value.shape[1:]],
                timeout_seconds=timeout_secs,
                **self._keys(purpose, value),
            )

    def _keys(self, purpose: int, value: tf.Tensor) -> dict[str, int]:
        key = repr((purpose, value.shape.as_list(), value.dtype.name))
        return {
            "group_size": len(self.tasks),
            "group_key": _GROUP_KEY,
            # Collectives with the same key must have the same shape and dtype in all graphs of a process.
            "instance_key": _GROUP_KEY + zlib.crc32(key.encode()) % 2**29,
        }

    def gather(self, numbers: Sequence[int], master: str, config: Any, timeout_secs: float) -> Any:
        """Returns the numbers of all tasks, `[tasks, numbers]`, once all tasks have called this."""
        own = np.array([numbers], np.int64)
        with tf.Graph().as_default(), Watch(self) as watch:
            rows = self.concat(tf.constant(own), MEETING, timeout_secs)
            with tf1.Session(master, config=config) as session:
                watch.session = session
                with watch.naming_the_lost():
                    try:
                        return session.run(rows)
                    except tf.errors.DeadlineExceededError as error:
                        raise TaskLostError(
                            f"Not all of {', '.join(map(str, self.tasks))} began or ended their training "
                            f"within {timeout_secs:g} s of {self.own}: see the logs of the others."
                        ) from error


class Watch:
    """Closes a session when another task is lost, so that the session does not wait for ever.

    `session`: The session to close; None if there is none.
    """

    def __init__(self, peers: Peers, every_secs: float = 2.0):
        self._peers = peers
        self._every_secs = every_secs
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self.session: Any = None
        self.lost: Task | None = None

    def __enter__(self) -> Watch:
        self._is_over.clear()
        self._thread = threading.Thread(target=self._look, name="watch of the cluster", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    @contextlib.contextmanager
    def naming_the_lost(self) -> Iterator[None]:
        """Raises a `TaskLostError` in place of any error within the context after a task was lost."""
        try:
            yield
        except Exception as error:  # any code may be using the session when it is closed
            if self.lost is None:
                raise
            raise TaskLostError(
                f"The process of {self.lost} has ended, and {self._peers.own} can't continue without it, "
                "because all tasks train in step. Start all tasks again; training continues from the newest "
                "checkpoint."
            ) from error

    def _look(self) -> None:
        misses = dict.fromkeys(self._peers.others, 0)
        while not self._is_over.wait(self._every_secs):
            for task in self._peers.others:
                misses[task] = 0 if answers(task.address) else misses[task] + 1
                if misses[task] == _MISSES and not self._is_over.is_set():
                    self.lost = task
                    logger.error("No server answers for %s: its process has ended.", task)
                    if self.session is not None:
                        self.session.close()
                    return
