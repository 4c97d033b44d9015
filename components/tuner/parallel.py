"""Runs trials beside each other, each worker in a process of its own."""

import logging
import multiprocessing
import os
import threading
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from components.trainer.task_failure import TaskFailedError
from components.tuner.executor import Search

_LOGGER = logging.getLogger(__name__)


def run(search: Search, workers: int, owner: str) -> None:
    """Runs the trials of a search in processes, and returns when all have ended.

    The processes also end when this one dies.

    Args:
        search: The work of each process.
        workers: Number of processes.
        owner: See `Study`.

    Raises:
        BaseException: The error of the first process that failed.
        RuntimeError: A process died without one, for example because memory ran out.
    """
    context = multiprocessing.get_context("spawn")
    processes: dict[Any, Any] = {}
    try:
        for number in range(workers):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(search, owner, sender), name=f"tuner-{number}", daemon=True
            )
            process.start()
            sender.close()
            processes[receiver] = process
        waiting: set[Any] = set(processes)
        while waiting:
            for ready in wait(list(waiting)):
                waiting.discard(ready)
                _receive(ready, processes[ready])
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.join()


def _receive(receiver: Any, process: Any) -> None:
    try:
        failure: TaskFailedError | None = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(
            f"A process of the Tuner died with exit code {process.exitcode}; on Linux, -9 often means "
            "that memory ran out. Set fewer trials beside each other."
        ) from None
    if failure is not None:
        _LOGGER.error("A trial failed. Its traceback:\n\n%s", failure.text)
        raise failure.error()


def _work(search: Search, owner: str, sender: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        from components.tuner.settings import TunerSettings
        from components.tuner.study import Study

        settings = TunerSettings.from_json(search.exec_properties["tuner_settings"])
        search.run(Study(Path(search.folder), settings, owner))
    except BaseException as error:  # also SystemExit, which fails the search like any other error
        sender.send(TaskFailedError.of(error))
    else:
        sender.send(None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
