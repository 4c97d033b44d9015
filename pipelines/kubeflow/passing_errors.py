"""Tells temporary errors of storage and network from errors that a retry would meet again."""

import errno
import re
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

from pipelines.errors import BadInputError, RunFailedError

FIRST_DELAY_SECS = 30.0
LONGEST_DELAY_SECS = 300.0

_PASSING = frozenset(
    getattr(errno, name)
    for name in (
        "EAGAIN", "EBUSY", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTDOWN", "EHOSTUNREACH", "EIO",
        "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENOLCK", "ENOTCONN", "EPIPE", "EREMOTEIO", "ESTALE",
        "ETIMEDOUT",
    )
)  # fmt: skip
_NUMBER = re.compile(r"\[Errno (\d+)\]")
_OF_TENSORFLOW = re.compile(r"; (?:Input/output error|Stale file handle)\b")

_Result = TypeVar("_Result")


def may_pass(error: BaseException) -> bool:
    """Returns True if the storage or the network caused an error, so that a retry may succeed.

    A full disk, a missing file or a missing permission is not temporary.
    """
    if isinstance(error, (BadInputError, RunFailedError)):
        return False
    return any(map(_passes, _chain(error)))


def tried_again(
    work: Callable[[], _Result],
    retries: int,
    say: Callable[[BaseException, float, int], None],
    sleep: Callable[[float], None],
) -> _Result:
    """Returns the result of some work, which is repeated after a temporary error.

    `say`: function that is called before each retry, with the error, the delay in seconds, and the number
    of the retry.
    """
    delay_secs = FIRST_DELAY_SECS
    for number in range(1, retries + 1):
        try:
            return work()
        except Exception as error:
            if not may_pass(error):
                raise
            say(error, delay_secs, number)
        sleep(delay_secs)
        delay_secs = min(2 * delay_secs, LONGEST_DELAY_SECS)
    return work()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, the members of a group, and the errors that it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        for member in getattr(error, "exceptions", ()):
            yield from _chain(member)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _passes(error: BaseException) -> bool:
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _PASSING
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and isinstance(error, tensorflow.errors.OpError):
        return isinstance(
            error, (tensorflow.errors.UnavailableError, tensorflow.errors.DeadlineExceededError)
        ) or bool(_OF_TENSORFLOW.search(str(error)))
    numbers = _NUMBER.findall(str(error))  # of a worker's traceback
    return bool(numbers) and int(numbers[-1]) in _PASSING
