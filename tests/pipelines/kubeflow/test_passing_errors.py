import errno
import os

import pytest
import tensorflow as tf

from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow.passing_errors import may_pass, tried_again
from pipelines.kubeflow.training.cluster_jobs import TrainingJobError
from pipelines.root.lock import RootBusyError


def os_error(number):
    return OSError(number, os.strerror(number), "/mnt/file")


def raised_from(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (os_error(errno.EIO), True),
        (os_error(errno.ESTALE), True),  # an NFS server that came back
        (os_error(errno.ENOTCONN), True),  # FUSE: "Transport endpoint is not connected"
        (os_error(errno.ENOSPC), False),
        (os_error(errno.EACCES), False),
        (os_error(errno.ENOENT), False),
        (OSError("without a number"), False),
        (ConnectionResetError(), True),
        (TimeoutError("timed out"), True),
        (ValueError("a bug"), False),
        (MemoryError(), False),
        (KeyboardInterrupt(), False),
        (raised_from(TrainingJobError("out of reach"), ConnectionRefusedError()), True),
        (raised_from(RuntimeError("odd"), ValueError("a bug")), False),
        (raised_from(RunFailedError("Trainer", "a check"), os_error(errno.EIO)), False),
        (raised_from(BadInputError("no such column"), os_error(errno.EIO)), False),
        (RootBusyError("waited for the lock"), False),
        (RuntimeError("Traceback ...\nOSError: [Errno 2] No such\nOSError: [Errno 116] Stale"), True),
        (RuntimeError("Traceback ...\nOSError: [Errno 116] Stale\nOSError: [Errno 2] No such"), False),
    ],
)
def test_what_may_pass(error, expected):
    assert may_pass(error) == expected


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("UnavailableError", "/mnt/a; Connection refused", True),
        ("UnknownError", "/mnt/a; Stale file handle", True),
        ("UnknownError", "/mnt/a; Input/output error", True),
        ("UnknownError", "a bug", False),
        ("ResourceExhaustedError", "/mnt/a; No space left on device", False),
        ("InvalidArgumentError", "[Errno 5] in a text of the user", False),
    ],
)
def test_errors_of_tensorflow(name, message, expected):
    assert may_pass(getattr(tf.errors, name)(None, None, message)) == expected


def test_the_delays_double_up_to_a_limit():
    slept, said = [], []

    def work():
        raise TimeoutError(f"lost {len(slept)}")

    with pytest.raises(TimeoutError, match="lost 6"):
        tried_again(work, 6, lambda *values: said.append(values), slept.append)
    assert slept == [30, 60, 120, 240, 300, 300]
    assert [(str(error), number) for error, _, number in said] == [(f"lost {n}", n + 1) for n in range(6)]
