"""Errors of components: those that the user can fix, and the place where an error was raised."""

import traceback

_RAISED_AT = "_raised_at"


class SettingError(ValueError):
    """A setting names something that the data or the model lacks, which is only known at run time."""


def call_stack(error: BaseException) -> list[tuple[str, int]]:
    """Returns file and line of each call that led to an error, the innermost one last.

    For an error from another process, the calls are those of that process.
    """
    elsewhere: list[tuple[str, int]] | None = getattr(error, _RAISED_AT, None)
    if elsewhere is not None:
        return elsewhere
    frames = traceback.extract_tb(error.__traceback__)
    return [(frame.filename, frame.lineno or 0) for frame in frames]


def set_call_stack(error: BaseException, calls: list[tuple[str, int]]) -> None:
    """Records the calls of another process that led to an error; `call_stack` returns them from now on."""
    setattr(error, _RAISED_AT, calls)
