"""Runners: each one file that holds only the order and place in which components run."""

import difflib

from pipelines.errors import BadInputError

AVAILABLE_RUNNERS = ("local",)


def check_runner(name: str) -> None:
    """Checks the name of a runner.

    Raises:
      BadInputError: There is none of this name.
    """
    if name not in AVAILABLE_RUNNERS:
        nearest = sorted(
            AVAILABLE_RUNNERS,
            key=lambda known: -difflib.SequenceMatcher(None, known, name).ratio(),
        )
        raise BadInputError(
            f"--runner {name} is not available. Available runners: {', '.join(nearest)}."
        )
