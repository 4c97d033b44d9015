"""`[beam]` on Kubeflow: each step runs its Beam pipelines in its own pod."""

from pipelines.beam.options import direct_options, engine_name, given_options
from pipelines.config.beam import BeamConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError


def check_for_steps(given: PipelineConfig | TfxPipelineConfig) -> None:
    """Checks that the steps can follow the settings of `[beam]`."""
    config = given.beam
    if config.runner != "direct":
        raise BadInputError(
            f'beam.runner = "{config.runner}" ({engine_name(config)}) has no meaning on Kubeflow: the '
            "artifacts are in kubeflow.root, which the steps' pods mount and an engine's workers do not. "
            'Set beam.runner = "direct"; beam.direct.workers gives each step processes of its pod, and '
            "[kubeflow.components.NAME] cpu and memory what they need."
        )


def step_options(config: BeamConfig) -> tuple[str, ...]:
    """Returns the Beam options of every step; they do not affect its result."""
    processes = direct_options(config.direct) if config.direct.workers > 1 else []
    return (*processes, *given_options(config))
