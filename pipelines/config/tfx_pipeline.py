"""The configuration of a run of a TFX pipeline of the user's own: `[pipeline]` in place of `[data]`."""

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from pipelines.config.beam import BeamConfig
from pipelines.config.data import Section
from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.lineage import LineageConfig
from pipelines.config.load import assign_all, explain
from pipelines.config.retention import RetentionConfig
from pipelines.config.toml import read_toml
from pipelines.errors import BadInputError


class PipelineSource(Section):
    """`[pipeline]`: a TFX pipeline of your own.

    Attributes:
      file: Python file that defines it. Empty in the record of a run that was started in Python.
      function: Function that returns it. Default: `create_pipeline` or `_create_pipeline`, if `arguments`
        suffice; otherwise the pipeline that the file passes to a runner of TFX.
      arguments: Arguments of the function.
      parameters: Values of the pipeline's `RuntimeParameter`s.
    """

    file: str = ""
    function: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    parameters: dict[str, str | int | float] = Field(default_factory=dict)


class TfxPipelineConfig(Section):
    """Configuration of a TFX pipeline of the user's own: its definition says everything else.

    Attributes:
      name: Name of the pipeline. Default: the definition's.
    """

    name: str = ""
    pipeline: PipelineSource
    beam: BeamConfig = BeamConfig()
    retention: RetentionConfig = RetentionConfig()
    lineage: LineageConfig = LineageConfig()
    kubeflow: KubeflowConfig = KubeflowConfig()


def load_tfx_pipeline_config(
    config_file: Path | None,
    pipeline: str | None,
    arguments: dict[str, str],
    parameters: dict[str, str],
    settings: tuple[str, ...],
) -> TfxPipelineConfig:
    """Returns the validated configuration.

    Args:
      config_file: TOML file, or None. Its `pipeline.file` is relative to it.
      pipeline: Value of `--pipeline`, `FILE.py[:FUNCTION]`; overrides the file's.
      arguments: Values of `--arg` by name.
      parameters: Values of `--param` by name.
      settings: Values of `--set`.

    Raises:
      BadInputError: The configuration is invalid; the message has the key, the value and the fix.
    """
    tree: dict[str, Any] = read_toml(config_file) if config_file else {}
    source = tree.setdefault("pipeline", {})
    if config_file and isinstance(source, dict) and isinstance(source.get("file"), str):
        source["file"] = str(config_file.parent / source["file"])
    assign_all(tree, settings)
    if isinstance(source, dict):
        if pipeline is not None:
            file, colon, function = pipeline.partition(".py:")
            source["file"] = f"{file}.py" if colon else file
            source["function"] = function or None
        source["arguments"] = {**source.get("arguments", {}), **arguments}
        source["parameters"] = {**source.get("parameters", {}), **parameters}
    try:
        config = TfxPipelineConfig.model_validate(tree)
    except ValidationError as error:
        raise BadInputError(explain(error, config_file, TfxPipelineConfig)) from error
    if not config.pipeline.file:
        where = f"{config_file}: " if config_file else ""
        raise BadInputError(f"{where}pipeline.file is missing.")
    return config
