"""The runners that `--runner` can name."""

from components.nearest import nearest_first
from pipelines.errors import BadInputError
from pipelines.runners.beam import BeamRunner
from pipelines.runners.local import LocalRunner
from pipelines.runners.runner import Runner

RUNNERS: dict[str, Runner] = {
    "local": LocalRunner(),
    "beam": BeamRunner(),
}
"""By the name that `--runner` takes."""


def find_runner(name: str) -> Runner:
    """Returns the runner of this name.

    Raises:
      BadInputError: There is none; the message lists those that exist, the nearest first.
    """
    if name not in RUNNERS:
        raise BadInputError(
            f"--runner {name} is not available. "
            f"Available runners: {', '.join(nearest_first(name, RUNNERS))}."
        )
    return RUNNERS[name]
