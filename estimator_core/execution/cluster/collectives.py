"""Numbers that the tasks of a cluster tell each other, and what becomes of a task that is gone."""

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
_MISSES = 2  # looks in a row at which a task that is gone does not answer

MEETING, INPUTS, LOSS, AVERAGES = range(1, 5)
"""What is exchanged in a graph; averages are numbered, from the last one."""


class TaskLostError(RuntimeError):
    """A task of the cluster is gone, and the others can't go on without it."""


class Peers:
    """The tasks that train in step, and which one this is.

    Args:
        tasks: All of them, in the same order everywhere.
        index: That of this task.
    """

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
        """Returns the sum of what all tasks have; each must run it equally often.

        Args:
            value: Tensor of the same shape and dtype in all tasks.
            purpose: Distinguishes what is exchanged in a graph.
        """
        with tf1.device(self.device):
            return tf.raw_ops.CollectiveReduce(
                input=value,
                merge_op="Add",
                final_op="Id",
                subdiv_offsets=[0],
                **self._keys(purpose, value),
            )

    def concat(self, value: tf.Tensor, purpose: int, timeout_secs: float = 0) -> tf.Tensor:
        """Returns what all tasks have, one after the other; each must run it equally often.

        Args:
            value: Tensor of the same shape, [1, ...], and dtype in all tasks.
            purpose: Distinguishes what is exchanged in a graph.
            timeout_secs: Longest wait for the others; 0 is for ever.
        """
        with tf1.device(self.device):
            return tf.raw_ops.CollectiveGather(
                input=value,
                shape=[len(self.tasks), *value.shape[1:]],
                timeout_seconds=timeout_secs,
                **self._keys(purpose, value),
            )

    def _keys(self, purpose: int, value: tf.Tensor) -> dict[str, int]:
        what = repr((purpose, value.shape.as_list(), value.dtype.name))
        return {
            "group_size": len(self.tasks),
            "group_key": _GROUP_KEY,
            # What has one key must have one shape and dtype, in all graphs of a process.
            "instance_key": _GROUP_KEY + zlib.crc32(what.encode()) % 2**29,
        }

    def gather(self, numbers: Sequence[int], master: str, config: Any, timeout_secs: float) -> Any:
        """Returns the numbers of each task, as an array of [tasks, numbers], once all tasks call this.

        Raises:
            TaskLostError: A task went away, or did not come.
        """
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
    """Closes a session when one of the other tasks is gone, so that it does not wait for ever.

    Args:
        peers: The tasks.
        every_secs: Seconds between two looks.

    Attributes:
        session: The session; None when there is nothing to close.
        lost: The task that is gone, or None.
    """

    def __init__(self, peers: Peers, every_secs: float = 2.0):
        self._peers = peers
        self._every_secs = every_secs
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self.session: Any = None
        self.lost: Task | None = None

    def __enter__(self) -> Watch:
        """Begins to look."""
        self._is_over.clear()
        self._thread = threading.Thread(target=self._look, name="watch of the cluster", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Ends it."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    @contextlib.contextmanager
    def naming_the_lost(self) -> Iterator[None]:
        """Raises a `TaskLostError` instead of what fails within the context after a task was lost."""
        try:
            yield
        except Exception as error:  # whatever was using the session when it was closed
            if self.lost is None:
                raise
            raise TaskLostError(
                f"The process of {self.lost} has ended, and {self._peers.own} can't go on without it: all "
                "tasks train in step. Start all tasks again; training goes on from the newest checkpoint."
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
