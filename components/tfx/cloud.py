"""Refuses components of TFX that run in Google's cloud, and names an alternative."""

from typing import Any

from tfx.dsl.components.base.executor_spec import ExecutorClassSpec, ExecutorSpec

_EXTENSION = "tfx.extensions.google_cloud_ai_platform"
_REFUSAL = (
    "{} sends its work to Google Cloud AI Platform, which has no runtime for Estimators any more. "
    "Use {}: it runs where the pipeline runs."
)


def check_executor(component: str, spec: ExecutorSpec | None) -> None:
    """Checks that a `custom_executor_spec` names an executor that runs where the pipeline runs."""
    if isinstance(spec, ExecutorClassSpec) and spec.executor_class.__module__.startswith(_EXTENSION):
        raise ValueError(_REFUSAL.format(spec.class_path, f"{component} without custom_executor_spec"))


class _RefusedCloudComponent:
    alternative = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ValueError(_REFUSAL.format(f"{_EXTENSION}'s {type(self).__name__}", self.alternative))


class Trainer(_RefusedCloudComponent):
    alternative = "components.Trainer; its `cluster` trains in several processes"


class Pusher(_RefusedCloudComponent):
    alternative = "components.Pusher, and a server such as TF Serving on its base_directory"


class Tuner(_RefusedCloudComponent):
    alternative = "components.Tuner"


class CloudAIBulkInferrerComponent(_RefusedCloudComponent):
    alternative = "components.BulkInferrer"
