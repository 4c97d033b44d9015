"""Errors of components: which are the user's to mend, and where they were raised."""

import traceback

_RAISED_AT = "_raised_at"


class SettingError(ValueError):
    """A setting names what the data or the model has not; it is known only once they are there."""


def raised_at(error: BaseException) -> list[tuple[str, int]]:
    """Returns file and line of each call that led to an error, the innermost one last.

    For an error that was raised in another process and brought here, they are those of that process.
    """
    elsewhere: list[tuple[str, int]] | None = getattr(error, _RAISED_AT, None)
    if elsewhere is not None:
        return elsewhere
    frames = traceback.extract_tb(error.__traceback__)
    return [(frame.filename, frame.lineno or 0) for frame in frames]


def set_raised_at(error: BaseException, calls: list[tuple[str, int]]) -> None:
    """Notes where an error was raised, in another process: what `raised_at` returns from now on."""
    setattr(error, _RAISED_AT, calls)
