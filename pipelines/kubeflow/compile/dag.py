"""The steps of the compiled pipeline, taken from the definition that all runners share."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from components.tuner.search_space import Range, SearchSpace
from components.tuner.settings import TunerSettings
from pipelines.config.data import DataConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.profile import CsvProfile
from pipelines.data.staging import StagedData
from pipelines.definitions.model_code import ModelCode
from pipelines.definitions.run_plan import RunPlan
from pipelines.root import Root
from pipelines.root.schema.curated import CuratedSchema

if TYPE_CHECKING:
    from pipelines.definitions.csv_to_serving import CsvToServing

PLAN, RECORD, END = "Plan", "Record", "End"
"""Ids of the steps that are not components."""

_PUSHER_READS = {
    "evaluation": ("evaluator", "evaluation"),
    "schema": ("schema_gen", "schema"),
    "statistics": ("statistics_gen", "statistics"),
}
"""Further inputs of the Pusher's step: artifacts to keep for the next run, and the reason not to push."""

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
class Step:
    """A component's step.

    Attributes:
      role: Name of the component in `CsvToServing`, such as `example_gen`.
      component: Id of the component, such as `CsvExampleGen`.
      inputs: Source of each input artifact, as role and output, by key.
      outputs: Import path of the type of each output artifact, by key.
    """

    role: str
    component: str
    inputs: dict[str, tuple[str, str]] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


def pipeline_steps(curated_schema: bool, tunes: bool = False) -> tuple[Step, ...]:
    """Returns the steps of the components, each after those that it depends on.

    The version that serves and the schema of the root are not steps: `Plan` looks them up.

    Args:
      curated_schema: True if the user gives the schema.
      tunes: True if there is a search before the training.
    """
    from pipelines.definitions.csv_to_serving import csv_to_serving

    plan = RunPlan(
        root=Root(_PLACE),
        config=PipelineConfig(name="shape", data=DataConfig(path="data.csv", label="label")),
        profile=CsvProfile([], {}, 0, "", has_byte_order_mark=False),
        code=replace(_ANY_CODE, tuning=_ANY_TUNING) if tunes else _ANY_CODE,
        enable_cache=True,
        unfinished=None,
        schema=CuratedSchema(_PLACE / "schema.pbtxt", "") if curated_schema else None,
    )
    return steps_of(csv_to_serving(plan, StagedData(_PLACE, "*.csv", ())))


def steps_of(pipeline: "CsvToServing") -> tuple[Step, ...]:
    """Returns the steps of a pipeline's components, each after those that it depends on."""
    roles = component_roles(pipeline)
    steps = []
    for component in pipeline.pipeline.components:
        if component.id not in roles:
            continue
        role = roles[component.id]
        inputs = {
            key: (roles[channel.producer_component_id], channel.output_key)
            for key, channel in component.inputs.items()
            if channel.producer_component_id in roles
        }
        if role == "pusher":
            inputs |= _PUSHER_READS
        outputs = {key: type_path(channel.type) for key, channel in component.outputs.items()}
        steps.append(Step(role, component.id, inputs, outputs))
    return tuple(steps)


def component_roles(pipeline: "CsvToServing") -> dict[str, str]:
    """Returns the role of each component that has a step, by its id."""
    import components

    return {
        component.id: role
        for role, component in vars(pipeline).items()
        if role not in ("pipeline", "root_schema")
        and component is not None
        and not isinstance(component, components.Resolver)
    }


def type_path(artifact_type: type) -> str:
    """Returns the import path of an artifact's type."""
    return f"{artifact_type.__module__}.{artifact_type.__qualname__}"
