"""The steps of the compiled pipeline, taken from the definition that all runners share."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.data.staging import StagedData
from pipelines.definitions.model_code import ModelCode

if TYPE_CHECKING:
    from pipelines.definitions.csv_to_serving import CsvToServing

PLAN, RECORD, END = "Plan", "Record", "End"
"""Ids of the steps that are no component."""

_PUSHER_READS = {
    "evaluation": ("evaluator", "evaluation"),
    "schema": ("schema_gen", "schema"),
    "statistics": ("statistics_gen", "statistics"),
}
"""What the Pusher's step keeps beside the model, for the next run; and why it does not push."""

_PLACE = Path("/")
_NOTHING = ModelCode(
    preprocessing_fn="a.b",
    trainer="trainer_fn",
    trainer_path="a.c",
    module_file=None,
    transform_config={},
    custom_config={},
    train_steps=1,
    eval_steps=1,
    label=None,
    metrics=(),
    thresholds=(),
    slices=(),
)


@dataclass(frozen=True)
class Step:
    """A component's step.

    Attributes:
      role: Its name in `CsvToServing`, such as `example_gen`.
      component: Its id, such as `CsvExampleGen`.
      inputs: Role and output that each input artifact is from, by key.
      outputs: Import path of the artifact's type by key.
    """

    role: str
    component: str
    inputs: dict[str, tuple[str, str]] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


def pipeline_steps(curated_schema: bool) -> tuple[Step, ...]:
    """Returns the steps of the components, each behind those that it depends on.

    What serves, and the schema of the root, are no steps: `Plan` looks for them.

    Args:
      curated_schema: Whether the user gives the schema.
    """
    from pipelines.definitions.csv_to_serving import PipelinePlaces, SchemaFile, csv_to_serving
    from pipelines.root.metadata.place import connection_config

    shape = csv_to_serving(
        name="shape",
        data=StagedData(_PLACE, "*.csv", ()),
        code=_NOTHING,
        eval_config=_any_eval_config(),
        places=PipelinePlaces(_PLACE, connection_config(_PLACE), _PLACE, _PLACE),
        curated_schema=SchemaFile(_PLACE / "schema.pbtxt") if curated_schema else None,
    )
    return steps_of(shape)


def steps_of(pipeline: "CsvToServing") -> tuple[Step, ...]:
    """Returns the steps of a pipeline's components, each behind those that it depends on."""
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


def task_name(component: str) -> str:
    """Returns what a step is called on Kubeflow, such as `csv-example-gen`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", component).lower()


def _any_eval_config() -> Any:
    from tensorflow_model_analysis.proto import config_pb2

    metrics = config_pb2.MetricsSpec(metrics=[config_pb2.MetricConfig(class_name="AUC")])
    return config_pb2.EvalConfig(metrics_specs=[metrics])
