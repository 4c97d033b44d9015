"""The middle part of a run: runs the steps of the pipeline from a CSV, and returns the outcome."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.beam.runners import Runner
from pipelines.data.staging import StagedData, stage
from pipelines.errors import BadInputError
from pipelines.root.history import held_ids
from pipelines.root.migration import take_over
from pipelines.root.records import RunOutcome, RunRecord
from pipelines.runs.checks.component_checks import component_checks
from pipelines.runs.checks.schema_keeping import SchemaKeeping
from pipelines.runs.definitions.fingerprints import code_fingerprint, component_fingerprints
from pipelines.runs.definitions.run_plan import RunPlan
from pipelines.runs.outcome import push_outcome
from pipelines.runs.plan.data_plan import check_same_files
from pipelines.runs.reasons import reason_of_run
from pipelines.runs.recorder import RunRecorder, StepRecorder
from pipelines.steps.step_folders import FinishedStep, StepFolders
from pipelines.tabular.column_table import table_lines
from pipelines.terminal.progress import Display, Progress

if TYPE_CHECKING:
    from pipelines.runs.definitions.csv_to_serving import CsvToServing
    from pipelines.steps.planning import PlanContext
    from pipelines.steps.step_plan import StepPlan


def execute(plan: RunPlan, runner: Runner, recorder: RunRecorder, progress: Progress) -> RunOutcome:
    """Runs the steps of a plan."""
    note_plan(plan, recorder, progress.display)
    progress.thresholds = tuple(bound.metric for bound in plan.code.thresholds)
    progress.display.activity("loading TFX ...")
    import components  # noqa: F401  - before any TFX import: it makes TFDV importable
    from pipelines.root.leftovers import remove_leftovers
    from pipelines.runs.definitions.csv_to_serving import csv_to_serving
    from pipelines.steps.planning import plan_steps
    from pipelines.steps.running import run_steps

    gc.freeze()  # what TensorFlow and TFX have imported: to look through it takes half a second each time
    root = plan.root
    run_id = recorder.record.run_id
    if line := take_over(root):
        recorder.note(line)
    held = held_ids(root)
    root.schema.adopt(run_id, *held)
    pipeline = csv_to_serving(plan, stage_data(plan, recorder))
    folders = StepFolders(root.artifacts)
    context = _context_of_run(plan, pipeline, folders, run_id)
    steps = plan_steps(pipeline.pipeline, root, run_id, {}, plan.enable_cache, context)
    # Only now: a run that cannot be planned leaves a killed one's training alone.
    for lost in remove_leftovers(root, run_id, *(earlier.run_id for earlier in plan.continued)):
        recorder.warn(lost)
    recorder.add_graph(steps.graph)
    if plan.continued:
        kept = context.same_but_code.get(pipeline.transform.id)
        if kept is None or kept.name != steps.step(pipeline.transform.id).name:
            recorder.warn("Transform has no output to keep: it runs with the new code")
    _resume_training(plan, steps.step(pipeline.trainer.id), folders, run_id)
    by_component = component_checks(plan, pipeline, recorder.record.baseline_version)
    checks = {component.id: check for component, check in by_component.items()}
    keeping = SchemaKeeping.from_plan(plan)

    def keep_schema(step: "FinishedStep") -> None:
        if keeping and step.component == pipeline.schema_gen.id:
            keeping.prepare(step.artifact("schema").uri, root, run_id)

    observer = StepRecorder(recorder, progress, lambda step: checks.get(step.component), keep_schema)
    with runner.beam_options(plan.config.beam, root.beam) as beam_options:
        finished = run_steps(
            steps,
            folders,
            run_id,
            observer,
            beam_options,
            last_run=root.records.newest(other_than=run_id),
            explain=lambda step, compared: reason_of_run(step, compared, recorder.record, root.records),
        )
    by_id = {step.component: step for step in finished}
    outcome = push_outcome(
        by_id[pipeline.pusher.id].artifact("pushed_model"),
        by_id[pipeline.evaluator.id].artifact("evaluation").uri,
        root,
    )
    root.schema.adopt(*held, *([run_id] if outcome.held else []))
    return outcome


def note_plan(plan: RunPlan, recorder: RunRecorder, display: Display) -> None:
    """Shows the columns with their kinds, and records the notes on the data."""
    for line in table_lines(plan.columns, display.width and display.width - 2):
        display.line(f"  {line}")
    of_model = plan.code.plan.notes() if plan.code.plan else ()
    for note in (*plan.facts, *of_model):
        recorder.note(note)
    for finding in (*plan.findings, *plan.profile.notes()):
        recorder.warn(finding)


def stage_data(plan: RunPlan, recorder: RunRecorder) -> StagedData:
    """Returns the input of CsvExampleGen, and notes the reason if it is a copy of the user's files."""
    data = stage(plan.profile, plan.code.required_label, plan.root.data, plan.splits)
    check_same_files(plan.config, plan.profile, plan.spans)
    if plan.bad_rows:
        recorder.keep_bad_rows(plan.bad_rows)
    if data.reasons:
        recorder.note(f"CsvExampleGen reads a copy ({data.folder}): {'; '.join(data.reasons)}")
    return data


def plan_fingerprints(plan: RunPlan, pipeline: "CsvToServing", run_id: str) -> dict[str, dict[str, str]]:
    """Returns the fingerprints of every component of a run, by its id."""
    code = plan.code
    if code.fingerprint and code_fingerprint(code) != code.fingerprint:
        where = code.module_file or code.preprocessing_fn.rpartition(".")[0]
        raise BadInputError(
            f"The module {where}, or a Python file next to it, was changed after it was imported. Run again."
        )
    return component_fingerprints(
        pipeline,
        run_id,
        plan.profile.fingerprint,
        plan.code,
        plan.schema.fingerprint if plan.schema else "",
        mixes_code=bool(plan.continued),
        root_schema=plan.root_schema.fingerprint if plan.root_schema else "",
    )


def _context_of_run(
    plan: RunPlan, pipeline: "CsvToServing", folders: "StepFolders", run_id: str
) -> "PlanContext":
    from pipelines.steps.planning import PlanContext

    unfinished = plan.unfinished
    kept = None
    if plan.enable_cache and plan.continued:
        earlier = (_last_step(record, pipeline.transform.id, folders) for record in plan.continued)
        kept = next(filter(None, earlier), None)
    finished = (
        {
            component.id: step
            for component in pipeline.pipeline.components
            if (step := _last_step(unfinished, component.id, folders))
        }
        if unfinished
        else {}
    )
    return PlanContext(
        fingerprints=plan_fingerprints(plan, pipeline, run_id),
        finished=finished,
        same_but_code={pipeline.transform.id: kept} if kept else {},
    )


def _last_step(record: RunRecord, component: str, folders: "StepFolders") -> "FinishedStep | None":
    """Returns the step that a run has finished or reused; None if it no longer exists."""
    step = folders.finished(component, record.step(component))
    if step is None:  # the run was killed before it could record the step
        made = [other for other in folders.all_finished(component) if other.run_id == record.run_id]
        step = next(reversed(made), None)
    return step if step and step.is_whole else None


def _resume_training(plan: RunPlan, trainer: "StepPlan", folders: "StepFolders", run_id: str) -> None:
    """Makes the Trainer continue the training of the resumed run, or of the runs that it continued."""
    from components.trainer import unfinished

    place = folders.place(trainer)
    if folders.finished(trainer.component, trainer.name):
        return
    for earlier in filter(None, (plan.unfinished, *plan.continued)):
        finished = _last_step(earlier, trainer.component, folders)
        training = (
            Path(finished.artifact("model_run").uri)
            if finished
            else unfinished.unfinished_training(place.parent, earlier.run_id)
        )
        if training:
            other_code = earlier.run_id != run_id
            unfinished.hand_over(training, place, run_id, other_code=other_code)
            return
