"""Runs trials in parallel, each worker in its own process."""

import logging
import multiprocessing
import os
import threading
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from components.interruption import interruption
from components.trainer.task_failure import TaskFailedError
from components.tuner.search import SETTINGS_KEY, Search
from components.tuner.settings import TunerSettings
from components.tuner.study import Study

_LOGGER = logging.getLogger(__name__)

_SECS_BETWEEN_LOOKS = 1.0


def run(search: Search, study: Study) -> None:
    """Runs the trials of a search in processes, and returns when all have ended.

    The processes also end when this process dies.
    """
    context = multiprocessing.get_context("spawn")
    processes: dict[Any, Any] = {}
    ended = {trial.number for trial in study.results() if trial.state != "running"}
    try:
        for number in range(study.settings.parallel):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(search, study.owner, sender), name=f"tuner-{number}", daemon=True
            )
            process.start()
            sender.close()
            processes[receiver] = process
        waiting: set[Any] = set(processes)
        while waiting:
            for ready in wait(list(waiting), _SECS_BETWEEN_LOOKS):
                waiting.discard(ready)
                _receive(ready, processes[ready])
            interruption.check()
            for trial in study.results():
                if trial.state != "running" and trial.number not in ended:
                    ended.add(trial.number)
                    _LOGGER.info("Trained %s", trial.describe(study.settings.metric))
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
            "that memory ran out. Run fewer trials in parallel."
        ) from None
    if failure is not None:
        _LOGGER.error("A trial failed. Its traceback:\n\n%s", failure.text)
        raise failure.error()


def _work(search: Search, owner: str, sender: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        settings = TunerSettings.from_json(search.exec_properties[SETTINGS_KEY])
        search.run(Study(Path(search.folder), settings, owner))
    except BaseException as error:  # also SystemExit, which fails the search like any other error
        sender.send(TaskFailedError.from_error(error))
    else:
        sender.send(None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
