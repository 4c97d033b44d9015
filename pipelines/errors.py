"""The errors that the command line turns into a message and an exit code."""

from pathlib import Path


class BadInputError(ValueError):
    """The data or the configuration cannot be used; nothing was written. Exit code 2."""


class DamagedFileError(BadInputError):
    """A file of the root cannot be read, or has another form; `reason` does not repeat its path."""

    def __init__(self, file: Path, reason: str):
        super().__init__(f"{file} cannot be read: {reason}. Correct it, or remove it.")
        self.reason = reason


class RunFailedError(RuntimeError):
    """A component of a run failed. Exit code 1, or 2 if the input is the cause."""

    def __init__(self, component: str, message: str, is_bad_input: bool = False):
        super().__init__(message)
        self.component = component
        self.is_bad_input = is_bad_input


_MAX_SHOWN = 60


def counted(count: int, noun: str, plural: str = "") -> str:
    """Returns a count with its noun, such as `1 row` or `2 rows`; `plural` is for irregular nouns."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def shown(text: str) -> str:
    """Returns a text, shortened for a message."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters)"
