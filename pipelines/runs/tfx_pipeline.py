"""A run of a TFX pipeline of the user's own, from the request to its record."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from components.interruption import interruption
from pipelines.beam.runners import Runner, find_runner
from pipelines.config.load import explain, is_of_tfx_pipeline, read_tree
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import initial_fields, unfinished_run
from pipelines.root.records import RunOutcome, RunRecord
from pipelines.runs.checks.component_checks import (
    AnomalyCheck,
    ComponentCheck,
    ModelCheck,
    SearchCheck,
    ServedModelCheck,
    SplitCheck,
    VerdictCheck,
)
from pipelines.runs.environment import describe_environment
from pipelines.runs.outcome import run_to_outcome
from pipelines.runs.plan.inputs import RunRequest, check_root, nothing_to_resume
from pipelines.runs.recorder import RunRecorder, StepRecorder, record_killed_runs
from pipelines.runs.retention.prune import prune_after_run
from pipelines.steps.definition import load_pipeline
from pipelines.steps.step_folders import FinishedStep, StepFolders, find_pushes
from pipelines.steps.step_plan import with_root
from pipelines.terminal.output_capture import OutputCapture
from pipelines.terminal.progress import Progress

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

    from pipelines.steps.planning import PipelinePlan


def asks_for_tfx_pipeline(request: RunRequest) -> bool:
    """Returns True if a request without `--pipeline` is for a TFX pipeline all the same."""
    if request.config_file or request.settings:
        return is_of_tfx_pipeline(read_tree(request.config_file, request.settings))
    return request.resume and not request.gives_configuration and recorded_config(request.root) is not None


def recorded_config(root: Root) -> TfxPipelineConfig | None:
    """Returns the configuration of the newest run; None if it has none of a TFX pipeline."""
    newest = root.records.newest()
    if newest is None or not is_of_tfx_pipeline(newest.config):
        return None
    try:
        config = TfxPipelineConfig.model_validate(newest.config)
    except ValidationError as error:
        raise BadInputError(
            f"The configuration in the record of run {newest.run_id} cannot be used: "
            f"{explain(error, None, TfxPipelineConfig)} Restore the record, or give --pipeline again."
        ) from error
    if not config.pipeline.file:
        raise BadInputError(
            f"--resume: run {newest.run_id} was started by pipelines.run(...) in Python. Give the "
            "pipeline with --pipeline FILE.py, or call pipelines.run(..., resume=True)."
        )
    return config


def run_tfx_pipeline(
    request: RunRequest,
    config: TfxPipelineConfig,
    progress: Progress,
    capture: OutputCapture,
    pipeline: "Pipeline | None" = None,
) -> RunRecord:
    """Runs a pipeline and returns its record, whose status tells how it ended."""
    runner = find_runner(request.runner)
    runner.check(config.beam)
    check_root(request.root)
    root = request.root
    source = config.pipeline
    progress.display.activity(f"loading {source.file or 'TFX'}")
    import components  # noqa: F401  - before any TFX import: it makes TFDV importable

    if pipeline is None:
        pipeline = load_pipeline(Path(source.file).resolve(), source.function, source.arguments)
    from pipelines.root.leftovers import remove_leftovers
    from pipelines.steps.planning import plan_steps

    with root.lock.exclusively():
        record_killed_runs(root)
        unfinished = unfinished_run(root) if request.resume else None
        if request.resume and unfinished is None:
            raise BadInputError(nothing_to_resume(root))
        record = new_record(root, config, pipeline.pipeline_name, unfinished, request.scheduled_by)
        parameters = {name: str(value) for name, value in source.parameters.items()}
        if pipeline.pipeline_info.pipeline_root != str(root.artifacts):
            progress.display.line(
                f"i artifacts are kept in {root.artifacts}, not in the definition's pipeline_root, and no "
                "metadata store is used"
            )
        plan = plan_steps(pipeline, root, record.run_id, parameters, request.enable_cache)
        record = with_origin(record, plan, root)
        interruption.is_held = True  # until there is a record, so that every run's end is recorded
        capture.move_output(Path(record.log))
        recorder = RunRecorder(root, record, progress.display)
        for lost in remove_leftovers(root, record.run_id):
            recorder.warn(lost)
        recorder.add_graph(plan.graph)
        recorder.begin()
        resumed = "resumed " if unfinished else ""
        progress.display.line(f"{resumed}run {record.run_id} of {record.name!r} in {root}")
        recorder.end(
            run_to_outcome(lambda: _run(plan, config, runner, recorder, progress), record.run_id),
            tidy=lambda: prune_after_run(root, config.retention, progress.display.line),
        )
    return recorder.record


def new_record(
    root: Root,
    config: TfxPipelineConfig,
    pipeline_name: str,
    unfinished: RunRecord | None = None,
    scheduled_by: str | None = None,
) -> RunRecord:
    """Returns the record of a run that begins or resumes."""
    name = config.name or pipeline_name
    others = {
        record.name for record in root.records.read_begun() if record.name != name or "data" in record.config
    }
    if others:
        raise BadInputError(
            f"--root {root} has runs of the pipeline {others.pop()!r}: use another --root for {name!r}"
        )
    initial = initial_fields(root, unfinished, scheduled_by)
    fields = config.model_dump(mode="json", exclude={"kubeflow"})
    if file := config.pipeline.file:  # `lineage` and `--resume` may be called in another folder
        fields["pipeline"]["file"] = os.path.abspath(file)
    return RunRecord(
        **initial,
        name=name,
        status="running",
        config={**fields, "name": name},
        data_fingerprint="",
        log=str(root.log(initial["run_id"])),
        environment=describe_environment(),
    )


def with_origin(record: RunRecord, plan: "PipelinePlan", root: Root) -> RunRecord:
    """Returns the record of a run with the data, the code, and the version that it compares with."""
    definitions: dict[str, str] = {}
    file = record.section("pipeline").get("file", "")
    if file:
        definitions[Path(file).name] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    files: list[dict[str, Any]] = []
    for step in plan.steps:
        for part in ("executor", "code"):
            if digest := step.fingerprints.get(part):
                definitions[f"{step.component}: {part}"] = digest
        parameters = with_root(step.parameters, root.path)
        if "artifact_uri" in parameters:  # an Importer's
            content = {"": step.fingerprints["content"]}
            folder = parameters["artifact_uri"]
        else:
            folder, content = _files_of_example_gen(parameters.get("parameters", {}))
        for name, digest in content.items():
            path = os.path.join(folder, name) if name else folder
            size = os.path.getsize(path) if os.path.isfile(path) else None
            files.append({"path": path, "bytes": size, "sha256": digest})
    return record.changed(
        data_files=tuple(files),
        data_fingerprint=_sha256(files) if files else "",
        spans=tuple(_spans(plan)),
        code_definitions=definitions,
        code_fingerprint=_sha256(definitions),
        baseline_version=_baseline_version(plan, root, record.run_id),
    )


def _baseline_version(plan: "PipelinePlan", root: Root, run_id: str) -> str | None:
    """Returns the version of the model that a Resolver has chosen to compare with; None if there is none.

    It need not be the live model, such as after a rollback.
    """
    baselines = [
        [asdict(ref) for ref in step.inputs["baseline_model"]]
        for step in plan.steps
        if step.inputs.get("baseline_model")
    ]
    if not baselines:
        return None
    pushed = [
        push.version
        for step in StepFolders(root.artifacts).all_finished()
        if step.run_id != run_id and step.plan["inputs"].get("model") in baselines
        for push in find_pushes([step])
        if push.destination and Path(push.destination).parent == root.serving
    ]
    return pushed[-1] if pushed else None


def _files_of_example_gen(parameters: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Returns the folder of an ExampleGen's files and their hashes by name; nothing for other components."""
    folder, fingerprint = (
        parameters.get(name, {}).get("fieldValue", {}).get("stringValue", "")
        for name in ("input_base", "input_fingerprint")
    )
    try:
        return folder, json.loads(fingerprint) if folder else {}
    except ValueError:  # a driver of the user's has another form of it
        return folder, {}


def _spans(plan: "PipelinePlan") -> Iterator[dict[str, Any]]:
    """Yields the spans that the ExampleGens read, if their patterns have any."""
    for component in plan.pipeline.components:
        pattern = str(component.exec_properties.get("input_config"))
        if "{SPAN" not in pattern and "{YYYY}" not in pattern:  # it may have a width: `{SPAN:2}`
            continue
        parameters = plan.step(component.id).parameters["parameters"]
        span, version = (
            int(parameters[name]["fieldValue"]["intValue"]) if name in parameters else None
            for name in ("span", "version")
        )
        if span is not None:
            # TFX counts the days since 1970.
            day = None if "{SPAN" in pattern else date(1970, 1, 1) + timedelta(days=span)
            _, files = _files_of_example_gen(parameters)
            yield {"span": day.isoformat() if day else span, "version": version, "num_files": len(files)}


def _sha256(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _run(
    plan: "PipelinePlan",
    config: TfxPipelineConfig,
    runner: Runner,
    recorder: RunRecorder,
    progress: Progress,
) -> RunOutcome:
    from pipelines.steps.running import run_steps

    root, run_id = recorder.root, recorder.record.run_id
    baseline_version = recorder.record.baseline_version
    observer = StepRecorder(recorder, progress, lambda step: check_of_step(step.class_path, baseline_version))
    with runner.beam_options(config.beam, root.beam) as beam_options:
        steps = run_steps(
            plan,
            StepFolders(root.artifacts),
            run_id,
            observer,
            beam_options,
            last_run=root.records.newest(other_than=run_id),
        )
    return outcome_of_pushes(steps, observer.ran, root, recorder)


def outcome_of_pushes(
    steps: Sequence["FinishedStep"], ran: set[str], root: Root, recorder: RunRecorder
) -> RunOutcome:
    """Returns the outcome of a run whose steps have all finished: what its Pushers did, if it has any.

    `root`: root of the run. A version that was pushed elsewhere is only in a note.
    """
    pushes = find_pushes(steps)
    done = [push for push in pushes if push.destination]
    if pushes and not done:
        return RunOutcome("not_blessed", reason=pushes[-1].reason or "the model is not blessed")
    new = [push for push in done if push.component in ran]
    if new:
        for push in new:
            recorder.note(f"{push.component}: pushed to {push.destination}")
        own = [push.version for push in new if Path(push.destination).parent == root.serving]
        return RunOutcome("pushed", version=own[-1] if own else None)
    refusing = [step.component for step in steps if step.has_blessed is False]
    if pushes and refusing:  # the model that was pushed earlier would not be pushed today
        return RunOutcome("not_blessed", reason=f"{refusing[0]} has not blessed the model")
    if not ran:
        return RunOutcome("unchanged", reason="no step has changed")
    if not pushes:
        return RunOutcome("finished")
    return RunOutcome("unchanged", reason="the model that was pushed has not changed")


def check_of_step(class_path: str, baseline_version: str | None) -> ComponentCheck | None:
    """Returns the check that reads the outputs of a component for the record and the report, or None."""
    statistics = SplitCheck("StatisticsGen", stops=False)
    anomalies = AnomalyCheck("ExampleValidator", "warn", has_own_schema=True)
    model = ModelCheck(compares_models=False)
    checks: dict[str, ComponentCheck] = {
        "components.statistics_gen.executor.Executor": statistics,
        "tfx.components.statistics_gen.executor.Executor": statistics,
        "components.example_validator.executor.Executor": anomalies,
        "tfx.components.example_validator.executor.Executor": anomalies,
        "components.trainer.executor.Executor": model,
        "components.trainer.executor.GenericExecutor": model,
        "tfx.components.trainer.executor.GenericExecutor": model,
        "components.tuner.executor.Executor": SearchCheck(),
        "components.evaluator.executor.Executor": VerdictCheck((), (), baseline_version),
        "components.serving_check.executor.Executor": ServedModelCheck(),
    }
    return checks.get(class_path)
