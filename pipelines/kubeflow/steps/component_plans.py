"""Plans of a run's components, made from the plan of the run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.checks.component_checks import check_as_json, component_checks
from pipelines.checks.schema_keeping import SchemaKeeping
from pipelines.kubeflow.compile.dag import component_roles, type_path
from pipelines.kubeflow.component_plan import ComponentPlan
from pipelines.kubeflow.steps.kept_findings import findings_id
from pipelines.kubeflow.steps.step_code import code_of_step
from pipelines.kubeflow.training.training_job import EXECUTOR, JOB_KEY, TrainingJob, training_job_of
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_model, find_baseline_statistics
from pipelines.runs.execution import plan_fingerprints

if TYPE_CHECKING:
    from pipelines.definitions.csv_to_serving import CsvToServing
    from pipelines.definitions.run_plan import RunPlan


def component_plans(
    plan: "RunPlan", pipeline: "CsvToServing", run_id: str, baseline_version: str | None
) -> dict[str, ComponentPlan]:
    """Returns the plan of each component's step, by role.

    Args:
      plan: Plan of the run.
      pipeline: Components of the run.
      run_id: Id of the run. Only the plan of the Pusher, which is never cached, depends on it.
      baseline_version: Version that serves; None without one.

    Raises:
      BadInputError: The new model cannot be compared with the version that serves.
    """
    from google.protobuf import json_format
    from tfx.dsl.compiler import compiler, constants
    from tfx.orchestration.local import runner_utils
    from tfx.orchestration.portable import runtime_parameter_utils

    definition = compiler.Compiler().compile(pipeline.pipeline)
    runtime_parameter_utils.substitute_runtime_parameter(
        definition, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    )
    nodes = {
        node.pipeline_node.node_info.id: node.pipeline_node
        for node in definition.nodes
        if node.WhichOneof("node") == "pipeline_node"
    }
    deployment = runner_utils.extract_local_deployment_config(definition)
    fingerprints = plan_fingerprints(plan, pipeline, run_id)
    checks = component_checks(plan, pipeline, baseline_version)
    roles = component_roles(pipeline)
    place = findings_id(plan.root)
    plans = {}
    for component in pipeline.pipeline.components:
        if component.id not in roles:
            continue
        executor = runner_utils.extract_executor_spec(deployment, component.id)
        check = checks.get(component)
        role = roles[component.id]
        job = training_job_of(plan) if role == "trainer" else None
        plans[role] = ComponentPlan(
            component=component.id,
            executor={
                "type": type(executor).DESCRIPTOR.name,
                "spec": {"classPath": EXECUTOR} if job else json_format.MessageToDict(executor),
            },
            parameters=_with_job(json_format.MessageToDict(nodes[component.id].parameters), job),
            fingerprint=json.dumps(fingerprints[component.id], sort_keys=True),
            inputs={key: type_path(channel.type) for key, channel in component.inputs.items()},
            outputs={key: type_path(channel.type) for key, channel in component.outputs.items()},
            check=check_as_json(check) if check else None,
            code=code_of_step(role, plan.code),
            findings_id=place,
            **_beyond_the_component(role, plan, run_id, baseline_version),
        )
    return plans


def _with_job(parameters: dict[str, Any], job: TrainingJob | None) -> dict[str, Any]:
    if job is None:
        return parameters
    added = {JOB_KEY: {"fieldValue": {"stringValue": job.to_json()}}}
    return {"parameters": {**parameters["parameters"], **added}}


def _beyond_the_component(
    role: str, plan: "RunPlan", run_id: str, baseline_version: str | None
) -> dict[str, Any]:
    """Returns the fields of a plan for work that the definition leaves to other nodes."""
    root = plan.root
    if role == "example_validator":
        schema = plan.root_schema
        accepted_run = root.schema.run_to_compare_with(schema)
        statistics = find_baseline_statistics(root, run_id, accepted_run)
        return {
            "baselines": _relative(root, {"baseline_statistics": statistics}),
            "schema": root.schema.file.read_text(encoding="utf-8") if schema else None,
        }
    if role == "evaluator":
        model = find_baseline_model(root, run_id, plan.code.needs_baseline)
        return {"baselines": _relative(root, {"baseline_model": model})}
    if role in ("tuner", "trainer") and plan.config.trainer.warm_start:
        return {
            "baselines": _relative(root, {"base_model": find_baseline_model(root, run_id, True)})
        }
    if role == "pusher":
        keeping = SchemaKeeping.of_plan(plan)
        return {
            "push": {
                "baseline_version": baseline_version,
                "schema_keeping": asdict(keeping) if keeping else None,
            }
        }
    return {}


def _relative(root: Root, folders: dict[str, Path | None]) -> dict[str, str]:
    return {key: str(folder.relative_to(root)) for key, folder in folders.items() if folder}
