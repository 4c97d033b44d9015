"""Carries an error from a task's process to the process that started it.

Python does not pickle an error's traceback and cause, and some errors can't be pickled at all:
TensorFlow's hold a part of the graph.
"""

import pickle
import traceback
from typing import NamedTuple

from components.errors import call_stack, set_call_stack


class _Raised(NamedTuple):
    """An error in a chain of causes."""

    kind: str
    message: str
    pickled: bytes | None
    calls: list[tuple[str, int]]


class TaskFailedError(Exception):
    """An error of the user's code in a task."""

    def __init__(self, text: str, chain: list[_Raised]):
        super().__init__(text, chain)
        self.text = text
        self._chain = chain

    def __str__(self) -> str:
        return f"\n\n{self.text}"

    @classmethod
    def from_error(cls, error: BaseException) -> "TaskFailedError":
        chain: list[BaseException] = []
        cause: BaseException | None = error
        while cause is not None and cause not in chain:
            chain.append(cause)
            cause = cause.__cause__
        text = "".join(traceback.format_exception(error))
        return cls(
            text,
            [
                _Raised(type(raised).__name__, str(raised), _pickled(raised), call_stack(raised))
                for raised in chain
            ],
        )

    def error(self) -> BaseException:
        """Returns the error, with its causes and the calls in the task's process that raised them.

        An error that can't be pickled becomes a RuntimeError whose class has the same name.
        """
        cause: BaseException | None = None
        for raised in reversed(self._chain):
            error = _unpickled(raised)
            error.__cause__ = cause
            set_call_stack(error, raised.calls)
            cause = error
        return error


def _pickled(error: BaseException) -> bytes | None:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # fails for a class whose arguments are not just its message
    except Exception:  # the user's class decides how it is pickled
        return None
    return pickled


def _unpickled(raised: _Raised) -> BaseException:
    try:
        if raised.pickled is not None:
            return pickle.loads(raised.pickled)
    except Exception:  # its class can't be imported here
        pass
    return type(raised.kind, (RuntimeError,), {})(raised.message)
