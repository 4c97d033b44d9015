"""Settings of a step that its environment holds: they change neither its result nor the key of the cache."""

import os
from collections.abc import Mapping

RETRIES_VARIABLE = "ESTIMATOR_PIPELINES_RETRIES"
"""Environment variable with the number of retries after an error that may pass."""

UMASK_VARIABLE = "ESTIMATOR_PIPELINES_UMASK"
"""Environment variable with the umask of the step, in octal digits; `kubeflow.umask` sets it."""

_USUAL_UMASK = 0o022


def retries_of(environment: Mapping[str, str]) -> int:
    """Returns the number of retries of this step."""
    return int(environment.get(RETRIES_VARIABLE, "0"))


def set_umask(environment: Mapping[str, str]) -> None:
    """Sets the umask of this process; files that are there keep their permissions.

    Without a setting, a umask of 0 becomes 022: Argo's executor starts containers with 0, which lets anybody
    write to the records on the volume.
    """
    given = environment.get(UMASK_VARIABLE)
    former = os.umask(int(given, 8) if given else _USUAL_UMASK)
    if not given and former != 0:
        os.umask(former)
