"""Settings of a configuration that have no effect on Kubeflow."""

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import TfxPipelineConfig


def without_effect(config: PipelineConfig | TfxPipelineConfig) -> list[str]:
    """Returns a message of one or two sentences for each setting that has no effect on Kubeflow."""
    found = []
    if config.notify.has_receiver:
        found.append(
            "[notify] has no effect on Kubeflow: a compiled pipeline holds no address. Let Prometheus watch "
            "the metric newest_run_status of `schedule metrics --root ROOT`, or the runs of Kubeflow."
        )
    return found
