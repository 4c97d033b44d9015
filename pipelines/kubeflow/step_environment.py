"""Settings of a step from its environment: they change neither its result nor the key of the cache."""

import os
from collections.abc import Mapping

RETRIES_VARIABLE = "ESTIMATOR_PIPELINES_RETRIES"
"""Environment variable with the number of retries after a temporary error."""

UMASK_VARIABLE = "ESTIMATOR_PIPELINES_UMASK"
"""Environment variable with the umask of the step, in octal digits; `kubeflow.umask` sets it."""

_USUAL_UMASK = 0o022


def configured_retries(environment: Mapping[str, str]) -> int:
    return int(environment.get(RETRIES_VARIABLE, "0"))


def set_umask(environment: Mapping[str, str]) -> None:
    """Sets the umask. Existing files keep their permissions.

    Without a setting, a umask of 0 becomes 022: Argo's executor starts containers with 0, which lets anybody
    write to the records on the volume.
    """
    configured = environment.get(UMASK_VARIABLE)
    previous = os.umask(int(configured, 8) if configured else _USUAL_UMASK)
    if not configured and previous != 0:
        os.umask(previous)
