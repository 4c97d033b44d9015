"""The configuration of a run of a TFX pipeline of the user's own: `[pipeline]` in place of `[data]`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from pipelines.config.beam import BeamConfig
from pipelines.config.data import Section
from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.lineage import LineageConfig
from pipelines.config.load import assign_all, explain, is_of_tfx_pipeline, load_config, read_tree
from pipelines.config.notify import NotifyConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.retention import RetentionConfig
from pipelines.config.toml import read_toml, toml_text
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
        notify: Receivers of notifications about scheduled runs; it is in no record, as an address may be a
            secret.
    """

    name: str = ""
    pipeline: PipelineSource
    beam: BeamConfig = BeamConfig()
    retention: RetentionConfig = RetentionConfig()
    lineage: LineageConfig = LineageConfig()
    kubeflow: KubeflowConfig = KubeflowConfig()
    notify: NotifyConfig = Field(default=NotifyConfig(), exclude=True)


AnyConfig = PipelineConfig | TfxPipelineConfig


def load_any_config(config_file: Path | None, settings: Sequence[str]) -> AnyConfig:
    """Returns the validated configuration of a pipeline from a CSV, or of a TFX pipeline."""
    if is_of_tfx_pipeline(read_tree(config_file, settings)):
        return load_tfx_pipeline_config(config_file, None, {}, {}, tuple(settings))
    return load_config(config_file, settings=settings)


def pipeline_settings(
    pipeline: str | None, arguments: Mapping[str, str], parameters: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the values of `--pipeline`, `--arg` and `--param` as values of `--set`."""
    values = {}
    if pipeline is not None:
        file, colon, function = pipeline.partition(".py:")
        values["file"] = f"{file}.py" if colon else file
        values["function"] = function  # TOML has no None to override a configuration file with
    for section, named_values in (("arguments", arguments), ("parameters", parameters)):
        values.update({f"{section}.{toml_text(name)}": value for name, value in named_values.items()})
    return tuple(f"pipeline.{key}={toml_text(value)}" for key, value in values.items())


def load_tfx_pipeline_config(
    config_file: Path | None,
    pipeline: str | None,
    arguments: dict[str, str],
    parameters: dict[str, str],
    settings: tuple[str, ...],
) -> TfxPipelineConfig:
    """Returns the validated configuration."""
    tree: dict[str, Any] = read_toml(config_file) if config_file else {}
    source = tree.setdefault("pipeline", {})
    if config_file and isinstance(source, dict) and isinstance(source.get("file"), str):
        source["file"] = str(config_file.parent / source["file"])
    assign_all(tree, (*settings, *pipeline_settings(pipeline, arguments, parameters)))
    if isinstance(source, dict):
        source["function"] = source.get("function") or None  # see `pipeline_settings`
    try:
        config = TfxPipelineConfig.model_validate(tree)
    except ValidationError as error:
        raise BadInputError(explain(error, config_file, TfxPipelineConfig)) from error
    if not config.pipeline.file:
        where = f"{config_file}: " if config_file else ""
        raise BadInputError(f"{where}pipeline.file is missing.")
    return config
