"""One task of a cluster on this machine: a process, its outcome and its log."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from estimator_core.training.continuous_evaluation import training_is_over

_SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork
_LAST_LINES = 20
_starting = threading.Lock()  # for changes of this process's TF_CONFIG
_printing = threading.Lock()


class Failure(NamedTuple):
    """The failure of a task."""

    message: str
    exception: BaseException | None


class LocalTask:
    """A process that runs a function as one task of a cluster.

    `log_path`: file of all that it prints or logs; None prints it to stderr, after the task's name.
    """

    def __init__(self, fn: Callable[[], Any], kind: str, index: int, tf_config: str, log_path: str | None):
        self.kind = kind
        self.index = index
        self.name = f"{kind} {index}"
        self.has_returned = False
        self.result: Any = None
        self.outcome: Connection
        self._process: Any = None
        self._fn = fn
        self._tf_config = tf_config
        self._log_path = log_path
        self._orders: Connection
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._log_reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        """Id of the started process."""
        return self._process.pid

    def start(self) -> None:
        """Starts the process, or a new process after it has ended."""
        try:
            fn = pickle.dumps(self._fn)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                "fn must be picklable: a function at the top level of a module, or a functools.partial "
                f"of one. Received: fn={self._fn!r}"
            ) from error
        self.has_returned = False
        log, log_end = _SPAWN.Pipe(duplex=False)
        self.outcome, outcome_end = _SPAWN.Pipe(duplex=False)
        orders_end, self._orders = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_run, args=(fn, log_end, outcome_end, orders_end), name=self.name)
        with _starting, _temporary_tf_config(self._tf_config):
            process.start()
        self._process = process
        for end in (log_end, outcome_end, orders_end):
            end.close()  # the task's ends: open here, they would keep the pipes open
        self._log_reader = threading.Thread(target=self._read_log, args=(log,), daemon=True)
        self._log_reader.start()

    def _read_log(self, log: Connection) -> None:
        with contextlib.ExitStack() as files:
            lines = files.enter_context(os.fdopen(os.dup(log.fileno()), errors="replace"))
            log.close()
            file = None
            if self._log_path is not None:
                file = files.enter_context(open(self._log_path, "a"))
            for line in lines:
                self._last_lines.append(line)
                if file is not None:
                    file.write(line)
                    file.flush()
                    continue
                with _printing:
                    sys.stderr.write(f"[{self.name}] {line.rstrip()}\n")
                    sys.stderr.flush()

    def receive(self) -> Failure | None:
        """Reads the outcome, which must be ready to read; returns the failure, or None."""
        try:
            kind, value = self.outcome.recv()
        except (EOFError, ConnectionResetError):
            return self._died()
        if kind == "returned":
            self.result, self.has_returned = value, True
            return None
        trace, pickled = value
        error = None
        if pickled is not None:
            # The user's class may raise anything; then only the text remains.
            with contextlib.suppress(Exception):
                error = pickle.loads(pickled)
        return Failure(f"Its traceback:\n\n{trace}", error)

    def _died(self) -> Failure:
        self._process.join()
        if self._log_reader is not None:
            self._log_reader.join(1.0)
        code = self._process.exitcode
        if code < 0:
            how = f"Signal {-code} ({signal.Signals(-code).name}) ended its process."
        else:
            how = f"Its process ended with exit code {code}."
        if not self._last_lines:
            return Failure(
                f"{how} It had not begun with fn: a new process has to import the program first. Its "
                "output is on stderr. A script must not start a cluster when it is imported: let it do so "
                'below `if __name__ == "__main__":`.',
                None,
            )
        return Failure(f"{how} The last lines of its log:\n\n{''.join(self._last_lines)}", None)

    def tell_that_training_is_over(self) -> None:
        """Lets the evaluator end with the last checkpoint."""
        with contextlib.suppress(BrokenPipeError):  # it has already ended
            self._orders.send("training is over")

    def kill(self) -> None:
        """Kills the process (SIGKILL) if it was started."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def terminate(self) -> None:
        """Asks the process to end, by SIGTERM, if it was started."""
        if self._process is not None:
            self._process.terminate()

    def join(self, timeout_secs: float | None = None) -> int | None:
        """Returns the exit code of the process once it ends; None after `timeout_secs`."""
        self._process.join(timeout_secs)
        return self._process.exitcode

    def end(self, grace_secs: float) -> None:
        """Waits for the process to end; kills it after `grace_secs`."""
        if self._process is None:
            return
        self._process.join(grace_secs)
        if self._process.is_alive():
            self.kill()
        if self._log_reader is not None:
            self._log_reader.join(1.0)
        self.outcome.close()
        self._orders.close()


@contextlib.contextmanager
def _temporary_tf_config(tf_config: str) -> Iterator[None]:
    """Sets TF_CONFIG while a process is started: the process needs it before it imports any module."""
    previous = os.environ.get("TF_CONFIG")
    os.environ["TF_CONFIG"] = tf_config
    try:
        yield
    finally:
        if previous is None:
            del os.environ["TF_CONFIG"]
        else:
            os.environ["TF_CONFIG"] = previous


# In the process of the task


def _run(fn: bytes, log: Connection, outcome: Connection, orders: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the launching process, which ends this
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    log.close()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    threading.Thread(target=_obey, args=(orders,), daemon=True).start()
    try:
        # Unpickled here, so that errors of importing its module go to the log and the outcome.
        result = pickle.loads(fn)()
        message = pickle.dumps(("returned", result))
    except BaseException as error:
        trace = traceback.format_exc()
        pickled = None
        with contextlib.suppress(Exception):  # the user's class may raise anything
            pickled = pickle.dumps(error)
        outcome.send_bytes(pickle.dumps(("raised", (trace, pickled))))
        if isinstance(error, SystemExit):
            raise  # keeps its exit code
        sys.exit(1)
    outcome.send_bytes(message)


def _obey(orders: Connection) -> None:
    """Ends this process with the launching one; tells the evaluator when training is over."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while True:
        ready = wait([parent.sentinel, orders])
        if parent.sentinel in ready:
            os._exit(1)
        try:
            orders.recv()
        except (EOFError, ConnectionResetError):
            os._exit(1)
        training_is_over.set()
