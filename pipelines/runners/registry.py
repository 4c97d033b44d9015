"""Registry of the runners for `--runner`."""

from components.nearest import nearest_first
from pipelines.errors import BadInputError
from pipelines.runners.beam import BeamRunner
from pipelines.runners.local import LocalRunner
from pipelines.runners.runner import Runner

RUNNERS: dict[str, Runner] = {
    "local": LocalRunner(),
    "beam": BeamRunner(),
}
"""Runners by their name in `--runner`."""

KUBEFLOW = "kubeflow"
"""Further name for `--runner`: runs a compiled pipeline, not the components in this process."""

RUNNER_NAMES = (*RUNNERS, KUBEFLOW)


def find_runner(name: str) -> Runner:
    """Returns the runner of this name.

    Raises:
      BadInputError: There is no such runner; the message lists the valid names, nearest first.
    """
    if name not in RUNNERS:
        raise BadInputError(
            f"--runner {name} is not available. "
            f"Available runners: {', '.join(nearest_first(name, (*RUNNERS, KUBEFLOW)))}."
        )
    return RUNNERS[name]
