"""A cluster of real processes on this machine, for tests and to use all of its cores."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
from collections.abc import Callable, Collection, Iterator
from multiprocessing.connection import wait
from typing import Any, NamedTuple

from estimator_core.cluster import CHIEF, EVALUATOR, PS, WORKER
from estimator_core.experimental.local_task import LocalTask
from estimator_core.training.termination import exits_on_sigterm

# Below the ports that Linux gives to outgoing connections: a port is used seconds after it was chosen,
# when a process has imported TensorFlow.
_FIRST, _LAST = 12000, 32000


class LocalClusterResult(NamedTuple):
    """The results of the function in the chief and in the evaluator.

    Attributes:
        chief: Result in the chief.
        evaluator: Result in the evaluator, or None if there is none.
    """

    chief: Any
    evaluator: Any


class LocalClusterError(RuntimeError):
    """A task of a local cluster failed; the message has the traceback of that process.

    `__cause__` is the exception of the task, if it could be pickled.

    Args:
        task: Name of the task, such as "worker 0".
        message: Description of the failure.
    """

    def __init__(self, task: str, message: str):
        super().__init__(task, message)
        self.task = task
        self.message = message

    def __str__(self) -> str:
        return f"{self.task} failed. {self.message}"


def launch_local_cluster(
    fn: Callable[[], Any],
    num_workers: int = 1,
    num_ps: int = 0,
    evaluator: bool = False,
    *,
    chief: bool = True,
    log_dir: str | os.PathLike[str] | None = None,
    grace_secs: float = 10.0,
) -> LocalClusterResult:
    """Runs `fn` in each process of a cluster on this machine, and returns its results.

    Each task is a separate process, whose TF_CONFIG has free ports of 127.0.0.1. `fn` makes
    the Estimator and calls `train_and_evaluate`, which does the part of each task. All tasks must use
    the same `model_dir`, so pass it to `fn`.

    The call returns when `fn` has returned in the chief, in all workers and in the evaluator. The
    evaluator is told when training is over, so that it ends with the last checkpoint even if training
    ended before `max_steps`. Parameter servers are ended last. If a task fails, or this call is
    interrupted (Ctrl-C or SIGTERM), all tasks are ended: by SIGTERM, and by SIGKILL after `grace_secs`.
    They also end when this process dies.

    The processes are spawned: `fn` must be picklable, a function at the top level of a module
    that a new process can import, or a `functools.partial` of one with picklable arguments; lambdas
    and nested functions don't work. A script that calls this needs the usual
    `if __name__ == "__main__":`, as each process imports it.

    Example:
        >>> def train(model_dir):
        ...     estimator = est.Estimator(model_fn, model_dir=model_dir)
        ...     return est.train_and_evaluate(estimator, train_spec(), eval_spec())
        >>> if __name__ == "__main__":  # doctest: +SKIP
        ...     job = functools.partial(train, "model")
        ...     (metrics, exports) = launch_local_cluster(job, 3, 2, evaluator=True).evaluator

    Args:
        fn: Function without arguments.
        num_workers: Number of tasks that train: the chief and `num_workers - 1` of type "worker".
        num_ps: Number of parameter servers; more than one worker needs at least one, or a
            `tf.distribute.MultiWorkerMirroredStrategy` as their `train_distribute`.
        evaluator: Starts an evaluator if true.
        chief: False starts only tasks of type "worker" for training, as such a strategy allows; worker 0
            then gives the result of the chief.
        log_dir: Directory of a log file for each task, such as `worker-0.log`, with all that it prints or
            logs. None prints all of it to this process's stderr, each line after the task's name, as
            "[worker 0] ".
        grace_secs: Seconds that a task gets to save its state when it is ended.

    Returns:
        A `LocalClusterResult`: the results of `fn` in the chief and in the evaluator.

    Raises:
        LocalClusterError: A task failed. The first failure has the task's own traceback, and its
            exception as the cause.
        ValueError: There are too few workers or parameter servers.
        TypeError: `fn` is not callable or can't be pickled.
    """
    if not callable(fn):
        raise TypeError(f"fn must be a function without arguments. Received: fn={fn!r}")
    if num_workers < 1 or num_ps < 0:
        raise ValueError(
            "num_workers must be above 0 and num_ps not negative. Received: "
            f"num_workers={num_workers}, num_ps={num_ps}"
        )
    with (
        exits_on_sigterm(),
        local_cluster(
            fn, num_workers - chief, num_ps, evaluator, chief=chief, log_dir=log_dir, grace_secs=grace_secs
        ) as tasks,
    ):
        for task in tasks:
            task.start()
        _wait(tasks, {CHIEF, WORKER})
        for task in tasks:
            if task.kind == EVALUATOR:
                task.tell_that_training_is_over()
        _wait(tasks, {EVALUATOR})
        results = {(task.kind, task.index): task.result for task in tasks}
    return LocalClusterResult(results[CHIEF if chief else WORKER, 0], results.get((EVALUATOR, 0)))


@contextlib.contextmanager
def local_cluster(
    fn: Callable[[], Any],
    num_other_workers: int,
    num_ps: int,
    evaluator: bool,
    *,
    chief: bool = True,
    log_dir: str | os.PathLike[str] | None,
    grace_secs: float,
) -> Iterator[list[LocalTask]]:
    """Yields the tasks of a cluster, not started yet, and ends them all at the end.

    See `launch_local_cluster` for the arguments; `num_other_workers` excludes the chief.
    """
    sizes = {CHIEF: int(chief), WORKER: num_other_workers, PS: num_ps}
    ports = iter(free_ports(sum(sizes.values())))
    cluster = {
        kind: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for kind, size in sizes.items() if size
    }
    if log_dir is not None:
        os.makedirs(log_dir, exist_ok=True)
    tasks = []
    all_sizes = {**sizes, EVALUATOR: int(evaluator)}
    # Parameter servers first: the others wait for them.
    in_order = [(kind, i) for kind in (PS, CHIEF, WORKER, EVALUATOR) for i in range(all_sizes[kind])]
    for kind, index in in_order:
        config = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        path = None if log_dir is None else os.path.join(log_dir, f"{kind}-{index}.log")
        tasks.append(LocalTask(fn, kind, index, config, path))
    try:
        yield tasks
    finally:
        try:
            # A chief that saves its state needs the parameter servers.
            for of_ps in (False, True):
                group = [task for task in tasks if (task.kind == PS) == of_ps]
                for task in group:
                    if not task.has_returned:
                        task.terminate()
                for task in group:
                    task.end(grace_secs)
        except BaseException:  # such as a second Ctrl-C
            for task in tasks:
                task.kill()
            raise


def _wait(tasks: list[LocalTask], kinds: Collection[str]) -> None:
    """Waits until the tasks of these kinds have returned."""
    while True:
        running = [task for task in tasks if not task.has_returned]
        if not any(task.kind in kinds for task in running):
            return
        ready = wait([task.outcome for task in running])
        for task in running:
            if task.outcome in ready:
                failure = task.receive()
                if failure is not None:
                    raise LocalClusterError(task.name, failure.message) from failure.exception


def free_ports(count: int) -> list[int]:
    """Returns `count` different ports that were free a moment ago."""
    draws = random.SystemRandom()
    ports: list[int] = []
    while len(ports) < count:
        port = draws.randint(_FIRST, _LAST)
        if port not in ports and _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
