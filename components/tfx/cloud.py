"""Refuses what TFX runs in Google's cloud, and says what to use instead."""

from typing import Any

from tfx.dsl.components.base.executor_spec import ExecutorClassSpec, ExecutorSpec

_EXTENSION = "tfx.extensions.google_cloud_ai_platform"
_REFUSAL = (
    "{} sends its work to Google Cloud AI Platform, which has no runtime for Estimators any more. "
    "Use {}: it runs where the pipeline runs."
)


def check_executor(component: str, spec: ExecutorSpec | None) -> None:
    """Checks that a `custom_executor_spec` names an executor that runs where the pipeline runs."""
    if isinstance(spec, ExecutorClassSpec) and spec.executor_class.__module__.startswith(
        _EXTENSION
    ):
        raise ValueError(
            _REFUSAL.format(spec.class_path, f"{component} without custom_executor_spec")
        )


class _RefusedCloudComponent:
    alternative = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ValueError(_REFUSAL.format(f"{_EXTENSION}'s {type(self).__name__}", self.alternative))


class Trainer(_RefusedCloudComponent):
    """Takes the place of `tfx.extensions.google_cloud_ai_platform.Trainer`, and raises a ValueError."""

    alternative = "components.Trainer; its `cluster` trains in several processes"


class Pusher(_RefusedCloudComponent):
    """Takes the place of `tfx.extensions.google_cloud_ai_platform.Pusher`, and raises a ValueError."""

    alternative = "components.Pusher, and a server such as TF Serving on its base_directory"


class Tuner(_RefusedCloudComponent):
    """Takes the place of `tfx.extensions.google_cloud_ai_platform.Tuner`, and raises a ValueError."""

    alternative = "components.Tuner"


class CloudAIBulkInferrerComponent(_RefusedCloudComponent):
    """Takes the place of TFX's class of this name, and raises a ValueError."""

    alternative = "components.BulkInferrer"
