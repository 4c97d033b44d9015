"""The tasks of the compiled pipeline, taken from the definition that all runners share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from components.tuner.search_space import Range, SearchSpace
from components.tuner.settings import TunerSettings
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.data.encoding import Utf8Files
from pipelines.data.profile import CsvProfile
from pipelines.data.staging import StagedData
from pipelines.root import Root
from pipelines.root.schema.curated import CuratedSchema
from pipelines.runs.definitions.model_code import ModelCode
from pipelines.runs.definitions.run_plan import RunPlan

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

    from pipelines.steps.step_plan import StepPlan

PLAN, RECORD, END = "Plan", "Record", "End"
"""Ids of the steps that are not components."""

_ROOT_SCHEMA = "RootSchema"  # which a pipeline from a CSV has if its root has a schema
_PLACE = Path("/")
_ANY_CODE = ModelCode(
    preprocessing_fn="a.b",
    trainer="trainer_fn",
    trainer_path="a.c",
    module_file=None,
    transform_config={},
    custom_config={},
    train_steps=1,
    eval_steps=1,
    label=None,
    metrics=("auc",),
    thresholds=(),
    slices=(),
)

_ANY_TUNING = TunerSettings(SearchSpace((Range("any", 0, 1),)))


@dataclass(frozen=True)
class Dag:
    """The tasks of a pipeline."""

    name: str
    # Ids of the components with a task, each after those that it depends on; and these.
    upstream: Mapping[str, list[str]]
    # Default value of each of the pipeline's RuntimeParameters.
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)


def dag_of_csv(config: PipelineConfig) -> Dag:
    """Returns the tasks of the pipeline from a CSV, without reading the data."""
    from pipelines.runs.definitions.csv_to_serving import csv_to_serving

    plan = RunPlan(
        root=Root(_PLACE),
        config=config,
        profile=CsvProfile([], {}, 0, "", has_byte_order_mark=False),
        texts=Utf8Files([], [], "utf-8"),
        code=replace(_ANY_CODE, tuning=_ANY_TUNING) if config.tuner else _ANY_CODE,
        schema=CuratedSchema(_PLACE / "schema.pbtxt", "") if config.schema_.path else None,
    )
    pipeline = csv_to_serving(plan, StagedData(_PLACE, "*.csv", ())).pipeline
    return Dag(config.name, _upstream(pipeline))


def dag_of_definition(config: TfxPipelineConfig, pipeline: "Pipeline") -> Dag:
    """Returns the tasks of a TFX pipeline of the user's own."""
    from pipelines.steps.compiled import CompiledDefinition

    definition = CompiledDefinition(pipeline, str(_PLACE))
    configured = {name: str(value) for name, value in config.pipeline.parameters.items()}
    parameters = definition.parameter_values(configured)
    return Dag(config.name or pipeline.pipeline_name, _upstream(pipeline), parameters)


def has_task(step: "StepPlan") -> bool:
    """Returns True if a step has a task; `Plan` itself makes the others, which only copy or name files."""
    return bool(step.executor) and step.component != _ROOT_SCHEMA


def _upstream(pipeline: "Pipeline") -> dict[str, list[str]]:
    from tfx.dsl.components.common.importer import Importer
    from tfx.dsl.components.common.resolver import Resolver

    from pipelines.steps.compiled import upstream_ids

    ids = {
        component.id
        for component in pipeline.components
        if not isinstance(component, Importer | Resolver) and component.id != _ROOT_SCHEMA
    }
    return upstream_ids(pipeline, ids)
