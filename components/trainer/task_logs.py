"""Logs of a cluster's tasks: written in their processes, shown in the process that started them."""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator

# The logger of the Estimator's steps and evaluations.
_SHOWN = " INFO tensorflow: "
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SHOWN_TASKS = ("chief-0", "evaluator-0")
_POLL_SECS = 0.5

_LOGGER = logging.getLogger(__name__)


def write_to_stderr() -> None:
    """Makes this process, a task's, log to stderr, which goes to the task's log file."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)  # handlers of libraries
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    tensorflow = logging.getLogger("tensorflow")
    tensorflow.handlers.clear()  # would log everything twice
    tensorflow.propagate = True
    tensorflow.setLevel(logging.INFO)


@contextlib.contextmanager
def shown_here(log_dir: str) -> Iterator[None]:
    """Logs here the steps and evaluations that chief and evaluator log while the block runs."""
    over = threading.Event()
    followers = []
    for path in (os.path.join(log_dir, f"{task}.log") for task in _SHOWN_TASKS):
        size = os.path.getsize(path) if os.path.exists(path) else 0
        followers.append(threading.Thread(target=_follow, args=(path, size, over), daemon=True))
    for follower in followers:
        follower.start()
    try:
        yield
    finally:
        over.set()
        for follower in followers:
            follower.join()


def _follow(path: str, begin: int, over: threading.Event) -> None:
    """Logs the lines that are added to a file after a position."""
    rest = b""
    is_last = False
    while not is_last:
        is_last = over.wait(_POLL_SECS)  # lines written by then are still read
        if not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            file.seek(begin)
            added = file.read()
        begin += len(added)
        *lines, rest = (rest + added).split(b"\n")
        for line in lines:
            _, is_shown, message = line.decode(errors="replace").partition(_SHOWN)
            if is_shown:
                _LOGGER.info("%s", message)
