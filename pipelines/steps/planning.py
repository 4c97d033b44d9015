"""Plans the steps of a TFX pipeline: each gets its name before the first one runs."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from tfx.components.example_gen import driver as example_gen_driver
from tfx.dsl.components.base import base_driver
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import RESOLVER_CONFIG, RESOLVER_STRATEGY_CLASS, Resolver
from tfx.orchestration import data_types_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import inputs_utils
from tfx.proto import pusher_pb2
from tfx.types.artifact import Artifact
from tfx.types.standard_component_specs import PUSH_DESTINATION_KEY
from tfx.utils import proto_utils

import components  # noqa: F401  - before any TFX import: it makes TFDV importable
from components.example_gen.driver import ContentDriver
from components.example_validator.served_statistics import ServedStatisticsStrategy
from components.pusher.executor import BASE_DIRECTORY_KEY
from components.pusher.served_model import ServedModelStrategy
from pipelines.atomic_files import checked
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_model, find_baseline_statistics
from pipelines.steps.code_fingerprints import code_fingerprints, content_fingerprint
from pipelines.steps.compiled import CompiledDefinition, rejected, type_path, upstream_ids
from pipelines.steps.step_folders import (
    FinishedStep,
    StepFolders,
    artifact_properties,
    find_pushes,
    is_pusher,
    new_artifact,
    still_pushed,
)
from pipelines.steps.step_plan import FolderRef, OutputRef, StepPlan, without_root

_NO_CACHE = "run"  # the fingerprint of a step that was made without looking for an equal one
_NOT_MADE_YET = 1 << 50  # ids of artifacts that this run will make: above all others


@dataclass
class PipelinePlan:
    """The steps of a run, each after those that it depends on."""

    pipeline: Pipeline
    steps: list[StepPlan] = field(default_factory=list)
    outputs: dict[str, dict[str, tuple[OutputRef | FolderRef, ...]]] = field(default_factory=dict)
    # With Beam's options, which are part of no name.
    executors: dict[str, dict[str, Any]] = field(default_factory=dict)

    def step(self, component: str) -> StepPlan:
        return next(step for step in self.steps if step.component == component)

    @property
    def graph(self) -> dict[str, list[str]]:
        """The ids of the steps that each step comes after, by id."""
        return upstream_ids(self.pipeline, {step.component for step in self.steps})


@dataclass(frozen=True)
class PlanContext:
    """Values from outside of the pipeline, by component id."""

    # Of what a step reads; "push" is that of a Pusher that runs each time.
    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Steps of the resumed run, which are taken while their inputs are the same.
    finished: Mapping[str, FinishedStep] = field(default_factory=dict)
    # Steps that are taken if nothing but fingerprints, such as the code, has changed since.
    same_but_code: Mapping[str, FinishedStep] = field(default_factory=dict)
    without_cache: Collection[str] = ()  # Components that use no cache, though the pipeline does


def plan_steps(
    pipeline: Pipeline,
    root: Root,
    run_id: str,
    parameters: Mapping[str, str],
    use_cache: bool = True,
    context: PlanContext | None = None,
) -> PipelinePlan:
    """Returns the steps of a pipeline. Nothing is written."""
    return _Planner(pipeline, root, run_id, parameters, use_cache, context or PlanContext()).plan()


class _Planner:
    def __init__(
        self,
        pipeline: Pipeline,
        root: Root,
        run_id: str,
        parameters: Mapping[str, str],
        use_cache: bool,
        context: PlanContext,
    ):
        self._root = root
        self._folders = StepFolders(root.artifacts)
        self._run_id = run_id
        self._use_cache = use_cache
        self._context = context
        self._definition = CompiledDefinition(pipeline, str(root.artifacts))
        self._definition.substitute(run_id, parameters)
        self._nodes = self._definition.nodes
        self._plan = PipelinePlan(pipeline)

    def plan(self) -> PipelinePlan:
        for component in self._plan.pipeline.components:
            if isinstance(component, Resolver):
                self._plan.outputs[component.id] = self._look_up(component)
                continue
            if isinstance(component, Importer):
                step = self._import_step(component)
            else:
                step = self._finished_step(component) or self._reused(self._component_step(component))
            self._plan.steps.append(step)
            self._plan.outputs[component.id] = {
                key: (OutputRef(component.id, step.name, key),) for key in step.outputs
            }
        return self._plan

    def _finished_step(self, component: BaseNode) -> StepPlan | None:
        """Returns the step that the resumed run has finished, unless its inputs are others now."""
        finished = self._context.finished.get(component.id)
        if finished is None:
            return None
        step = checked(finished.plan, StepPlan)
        return step if step.inputs == self._inputs(component, self._nodes[component.id]) else None

    def _component_step(self, component: BaseNode) -> StepPlan:
        node = self._nodes[component.id]
        self._name_serving_folder(node.parameters.parameters)
        executor = self._definition.executor(component.id)
        kind = type(executor).DESCRIPTOR.name
        python_executor = getattr(executor, "python_executor_spec", executor)
        class_path = str(python_executor.class_path)
        properties: dict[str, dict[str, Any]] = {}
        fingerprints = code_fingerprints(class_path, _values(node))
        if driver := getattr(component, "driver_class", None):
            self._run_driver(component, driver, node, fingerprints, properties)
        spec = json_format.MessageToDict(executor)
        self._plan.executors[component.id] = {"type": kind, "spec": spec}
        # Where Beam works does not affect the outputs.
        without_beam = {
            name: value for name, value in spec.items() if not name.startswith("beamPipelineArgs")
        }
        plan = StepPlan(
            component=component.id,
            executor={"type": kind, "spec": without_beam},
            parameters=without_root(json_format.MessageToDict(node.parameters), self._root.path),
            inputs=self._inputs(component, node),
            outputs={key: type_path(channel.type) for key, channel in component.outputs.items()},
            fingerprints=fingerprints,
            properties=properties,
        )
        fingerprints |= self._context.fingerprints.get(component.id, {})
        earlier = self._context.same_but_code.get(component.id)
        if earlier is not None:
            same = replace(plan, fingerprints=earlier.plan["fingerprints"])
            if same.name == earlier.name:
                return same
        if "push" in fingerprints:
            return plan
        options = node.execution_options.caching_options
        uses_cache = self._use_cache and component.id not in self._context.without_cache
        if not (uses_cache and options.enable_cache):
            return replace(plan, fingerprints={**fingerprints, _NO_CACHE: self._run_id})
        return self._push_step(plan) if is_pusher(class_path) else plan

    def _name_serving_folder(self, parameters: Any) -> None:
        """Gives a Pusher the root's own path of ROOT/serving, which it may name by a link or with `..`."""
        serving = str(self._root.serving)

        def is_serving(folder: str) -> bool:
            return folder not in ("", serving) and os.path.realpath(folder) == os.path.realpath(serving)

        if PUSH_DESTINATION_KEY in parameters:
            value = parameters[PUSH_DESTINATION_KEY].field_value
            destination = proto_utils.json_to_proto(value.string_value, pusher_pb2.PushDestination())
            if is_serving(destination.filesystem.base_directory):
                destination.filesystem.base_directory = serving
                value.string_value = proto_utils.proto_to_json(destination)
        if BASE_DIRECTORY_KEY in parameters:  # given as a RuntimeParameter
            value = parameters[BASE_DIRECTORY_KEY].field_value
            value.string_value = serving if is_serving(value.string_value) else value.string_value

    def _reused(self, plan: StepPlan) -> StepPlan:
        """Returns the newest equal step, also one that a run without a cache has made."""
        if _NO_CACHE in plan.fingerprints:
            return plan
        for finished in reversed(self._folders.all_finished(plan.component)):
            run_id = finished.plan["fingerprints"].get(_NO_CACHE)
            same = plan
            if run_id:
                same = replace(plan, fingerprints={**plan.fingerprints, _NO_CACHE: run_id})
            if same.name == finished.name and finished.is_whole:
                return same
        # The served version is compared with the model of its step, even if other outputs were removed.
        while (step := self._folders.finished(plan.component, plan.name)) and not step.is_whole:
            plan = replace(plan, fingerprints={**plan.fingerprints, "remains": step.name})
        return plan

    def _push_step(self, plan: StepPlan) -> StepPlan:
        """Names a push after the run that made it, so that it is repeated if its version no longer exists."""
        for finished in reversed(self._folders.all_finished(plan.component)):
            earlier = finished.plan
            inputs = plan.inputs
            if any(push.destination for push in find_pushes([finished])) and "model" in inputs:
                # A model that was pushed is not pushed again because it was evaluated again.
                earlier_inputs = checked(earlier, StepPlan).inputs
                inputs = {
                    key: earlier_inputs.get(key, ()) if key.endswith("blessing") else outputs
                    for key, outputs in inputs.items()
                }
            push = earlier["fingerprints"].get("push")
            same = replace(plan, inputs=inputs, fingerprints={**plan.fingerprints, "push": push})
            if same.name == finished.name:
                if still_pushed(finished, self._root):
                    return same
                break
        return replace(plan, fingerprints={**plan.fingerprints, "push": self._run_id})

    def _import_step(self, component: Importer) -> StepPlan:
        (key,) = component.outputs
        uri = str(_values(self._nodes[component.id])["artifact_uri"])
        spec = self._nodes[component.id].outputs.outputs[key].artifact_spec
        proto = json_format.MessageToDict(spec)
        return StepPlan(
            component=component.id,
            executor={},
            parameters={"artifact_uri": uri},
            outputs={key: type_path(component.outputs[key].type)},
            fingerprints={"content": content_fingerprint(uri, component.id)},
            properties={
                key: {
                    "properties": _plain(proto.get("additionalProperties", {})),
                    "customProperties": _plain(proto.get("additionalCustomProperties", {})),
                }
            },
        )

    def _inputs(self, component: BaseNode, node: Any) -> dict[str, tuple[OutputRef | FolderRef, ...]]:
        specs = node.inputs.inputs
        inputs = {}
        for key, spec in specs.items():
            if spec.hidden:
                continue
            # The parts of a union of channels are inputs that no executor sees.
            united = [specs[part] for part in spec.mixed_inputs.input_keys]
            channels = [channel for input_spec in (spec, *united) for channel in input_spec.channels]
            outputs = [
                output
                for channel in channels
                for output in self._plan.outputs.get(channel.producer_node_query.id, {}).get(
                    channel.output_key, ()
                )
            ]
            if len(outputs) < spec.min_count:
                producers = ", ".join(sorted({input_spec.producer_node_query.id for input_spec in channels}))
                raise BadInputError(
                    f"{component.id} needs the input {key!r}, and {producers or 'nothing'} provides none: "
                    f"there is no such artifact in {self._root}. Run once without this input, or make it "
                    "optional"
                )
            inputs[key] = tuple(outputs)
        return inputs

    def _run_driver(
        self,
        component: BaseNode,
        driver: type,
        node: Any,
        fingerprints: dict[str, str],
        properties: dict[str, dict[str, Any]],
    ) -> None:
        """Lets the driver of an ExampleGen choose its span, and look at its files."""
        if driver is base_driver.BaseDriver:
            return
        # TFX's own compares the sizes and times of files; ours compares their content.
        own = ContentDriver if driver is example_gen_driver.FileBasedDriver else driver
        resolved = own(None).resolve_exec_properties(_values(node), None, None)
        for name, value in resolved.items():
            if value is not None:
                parameter = node.parameters.parameters[name].field_value
                data_types_utils.set_metadata_value(parameter, value)
        (key,) = component.outputs
        artifact = new_artifact(type_path(component.outputs[key].type))
        example_gen_driver.update_output_artifact(resolved, artifact.mlmd_artifact)
        properties[key] = artifact_properties(artifact)

    def _look_up(self, component: Resolver) -> dict[str, tuple[OutputRef | FolderRef, ...]]:
        """Calls a Resolver's strategy with what the root has, and with what this run will have by then."""
        properties = component.exec_properties
        strategy = properties[RESOLVER_STRATEGY_CLASS]
        if strategy in (ServedModelStrategy, ServedStatisticsStrategy):
            return self._look_up_what_serves(component)
        outputs_by_id: dict[int, OutputRef] = {}
        candidates = {
            key: self._candidates(component, channel, outputs_by_id)
            for key, channel in component.raw_inputs.items()
        }
        try:
            resolved = strategy(**properties[RESOLVER_CONFIG]).resolve_artifacts(None, candidates)
        except AttributeError as error:
            if error.obj is not None:
                raise
            raise rejected(
                component.id,
                f"the strategy {strategy.__name__}, which reads ML Metadata ({error}),",
                "use LatestArtifactStrategy, LatestBlessedModelStrategy, or one that goes by its input_dict",
            ) from error
        try:
            return {
                key: tuple(outputs_by_id[artifact.id] for artifact in (resolved or {}).get(key, ()))
                for key in component.outputs
            }
        except KeyError as error:
            raise rejected(
                component.id,
                f"the strategy {strategy.__name__}, which returns an artifact that it was not given,",
                "return artifacts of its input_dict",
            ) from error

    def _look_up_what_serves(self, component: Resolver) -> dict[str, tuple[OutputRef | FolderRef, ...]]:
        config = dict(component.exec_properties[RESOLVER_CONFIG])
        serving = Path(config.pop("base_directory"))
        if component.exec_properties[RESOLVER_STRATEGY_CLASS] is ServedModelStrategy:
            folder = find_baseline_model(self._root, self._run_id, config.get("required", True), serving)
        else:
            folder = find_baseline_statistics(
                self._root, self._run_id, config.get("accepted_run", ""), serving
            )
        return {
            key: (self._folders.ref(folder, type_path(channel.type)),) if folder else ()
            for key, channel in component.outputs.items()
        }

    def _candidates(
        self, component: Resolver, channel: Any, outputs_by_id: dict[int, OutputRef]
    ) -> list[Artifact]:
        wanted = type_path(channel.type)
        producer = getattr(channel, "producer_component_id", None)
        output_key = getattr(channel, "output_key", None)
        artifacts: dict[int, Artifact] = {}
        planned = {(step.component, step.name): step for step in self._plan.steps}
        for finished in self._folders.all_finished(producer or "*"):
            planned.pop((finished.component, finished.name), None)
            for key, kind in finished.plan["outputs"].items():
                if kind == wanted and output_key in (None, key):
                    artifact = finished.artifact(key)
                    artifacts[artifact.id] = artifact
                    outputs_by_id[artifact.id] = OutputRef(finished.component, finished.name, key)
        upstream = {node.id for node in component.upstream_nodes}
        for step in planned.values():
            for key, kind in step.outputs.items():
                is_upstream = step.component in upstream and producer in (None, step.component)
                if is_upstream and kind == wanted and output_key in (None, key):
                    artifact = new_artifact(
                        kind, step.properties.get(key), _NOT_MADE_YET + len(outputs_by_id)
                    )
                    artifacts[artifact.id] = artifact
                    outputs_by_id[artifact.id] = OutputRef(step.component, step.name, key)
        return list(artifacts.values())


def _values(node: Any) -> dict[str, Any]:
    """Returns the execution properties that are known before anything runs."""
    parameters: dict[str, Any] = inputs_utils.resolve_parameters_with_schema(node.parameters)
    values: dict[str, Any] = data_types_utils.build_parsed_value_dict(parameters)
    return values


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.get("fieldValue", value) for name, value in properties.items()}
