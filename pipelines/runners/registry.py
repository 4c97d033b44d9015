"""The runners that `--runner` can name."""

from components.nearest import nearest_first
from pipelines.errors import BadInputError
from pipelines.runners.local import LocalRunner
from pipelines.runners.runner import Runner

RUNNERS: dict[str, Runner] = {
    "local": LocalRunner(),
}
"""By the name that `--runner` takes."""

KUBEFLOW = "kubeflow"
"""What `--runner` takes, too: it runs a compiled pipeline, and not the components in this process."""

RUNNER_NAMES = (*RUNNERS, KUBEFLOW)


def find_runner(name: str) -> Runner:
    """Returns the runner of this name.

    Raises:
      BadInputError: There is none; the message lists those that exist, the nearest first.
    """
    if name not in RUNNERS:
        raise BadInputError(
            f"--runner {name} is not available. "
            f"Available runners: {', '.join(nearest_first(name, (*RUNNERS, KUBEFLOW)))}."
        )
    return RUNNERS[name]
