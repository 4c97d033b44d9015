"""The step `Plan`, the first: tidies the root, begins the run, and plans all other steps."""

import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import AnyConfig, TfxPipelineConfig
from pipelines.data.spans import name_spans
from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow.compile.admission import check_for_steps, step_options
from pipelines.kubeflow.compile.dag import PLAN, has_task
from pipelines.kubeflow.run_folder import PlannedRun, PlannedStep, RunFolder, locked_for_step, run_folders
from pipelines.root import Root
from pipelines.root.history import as_lost, held_ids
from pipelines.root.migration import take_over
from pipelines.root.records import RunRecord
from pipelines.root.signs_of_life import SILENT_SECS, newest_change
from pipelines.runs.definitions.run_plan import RunPlan
from pipelines.runs.plan.run_plan import RunRequest, plan_run
from pipelines.runs.recorder import RunRecorder, start_record
from pipelines.terminal.progress import PlainDisplay

if TYPE_CHECKING:
    from pipelines.runs.checks.component_checks import ComponentCheck
    from pipelines.steps.planning import PipelinePlan
    from pipelines.steps.step_folders import FinishedStep
    from pipelines.steps.step_plan import StepPlan

    Explain = Callable[[StepPlan, FinishedStep | None], str]


KEPT_SECS = 2 * SILENT_SECS
"""Time that the files of a run's steps are kept, counted from the newest of them."""

_OLD_FOLDERS = ("plans", "findings", "training")
"""Folders in which the steps of early versions kept their plans and findings."""

_MAX_TRIES = 3


def plan_on_kubeflow(
    root: Root, config: AnyConfig, kubeflow_run: str, tasks: Collection[str]
) -> dict[str, str]:
    """Begins a run, and returns the values that KFP's cache compares, by component id.

    A retry of the step continues the same run.
    """
    check_for_steps(config)
    run = _NewRun(root, RunFolder(root, kubeflow_run), config.kubeflow, tasks)
    if isinstance(config, TfxPipelineConfig):
        planned = _plan_definition(run, config)
    else:
        planned = _plan_csv(run, config)
    return {step.plan.component: step.key for step in planned.steps}


class _NewRun:
    """A run that begins, or begins again after the step Plan was stopped."""

    def __init__(self, root: Root, folder: RunFolder, settings: KubeflowConfig, tasks: Collection[str]):
        self.root = root
        self.folder = folder
        self.display = PlainDisplay(sys.stderr)
        self._settings = settings
        self._tasks = tasks

    def named(self, record: RunRecord) -> RunRecord:
        """Returns a record with the id of the run, which it keeps when this step is tried again."""
        record = record.changed(kubeflow_run=self.folder.kubeflow_run)
        run_id = self.folder.read_run_id()
        if run_id is None:
            return record
        earlier = self.root.records.read(run_id)
        number = earlier.number if earlier else record.number
        return record.changed(run_id=run_id, number=number, log=str(self.root.log(run_id)))

    def begin(self, record: RunRecord) -> RunRecorder:
        """Begins the record, and tidies the root, whose lock is held."""
        root = self.root
        recorder = RunRecorder(root, record, self.display)
        self.folder.write_run(record.run_id)
        self.display.line(f"run {record.run_id} of {record.name!r} in {root}")
        log = Path(record.log)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"The steps' own logs are in Kubeflow: run {self.folder.kubeflow_run}.\n")
        for silent in tidy_runs(root):
            self.display.line(f"! run {silent} never ended: its record was closed")
        if line := take_over(root):
            recorder.note(line)
        recorder.begin()
        return recorder

    def without_cache(self, components: Collection[Any]) -> set[str]:
        """Returns the ids of the components whose cache is turned off in `[kubeflow]`."""
        own = {name: step.cache for name, step in self._settings.components.items()}
        default = self._settings.cache
        ids = (component.id for component in components)
        return {name for name in ids if not (default if own.get(name) is None else own[name])}

    def write(
        self,
        plan: "PipelinePlan",
        recorder: RunRecorder,
        explain: "Explain",
        checks: "Mapping[str, ComponentCheck]",
        **fields: Any,
    ) -> PlannedRun:
        """Writes the plan for the other steps; makes those without a task itself."""
        from pipelines.kubeflow.steps.step_code import code_of_step
        from pipelines.root.leftovers import remove_leftovers
        from pipelines.runs.checks.component_checks import check_as_json
        from pipelines.steps.running import find_reusable, make_step
        from pipelines.steps.step_folders import StepFolders

        root, run_id = self.root, recorder.record.run_id
        folders = StepFolders(root.artifacts)
        for lost in remove_leftovers(root, run_id):
            recorder.warn(lost)
        recorder.add_graph(plan.graph)
        self._check_tasks({step.component for step in plan.steps if has_task(step)})
        last_run = root.records.newest(other_than=run_id)
        steps = []
        for step in plan.steps:
            executor = plan.executors.get(step.component)
            finished, reason = find_reusable(step, folders, run_id, last_run, explain)
            if finished is None and not has_task(step):
                finished = make_step(step, executor, folders, run_id)
            check = checks.get(step.component)
            steps.append(
                PlannedStep(
                    step,
                    executor,
                    finished.run_id if finished else run_id,
                    reason,
                    check_as_json(check) if check else None,
                    code_of_step(step, root) if step.executor else {},
                )
            )
        serving = root.versions.served_before(run_id)
        planned = PlannedRun(tuple(steps), serving_version=serving, **fields)
        self.folder.write_plan(planned)
        self.folder.write_run(run_id, len(recorder.record.notes))
        return planned

    def _check_tasks(self, planned: Collection[str]) -> None:
        if set(planned) != set(self._tasks):
            (name, *_) = sorted(set(planned) ^ set(self._tasks))
            where = "the compiled pipeline" if name in self._tasks else "the pipeline of this run"
            raise BadInputError(
                f"{name} is only in {where}: the pipeline has changed since it was compiled. Compile it "
                "again, with the code that the image has."
            )


def _plan_csv(run: _NewRun, config: PipelineConfig) -> PlannedRun:
    root = run.root
    runner = "beam" if config.beam.has_engine else "local"
    for _ in range(_MAX_TRIES):
        plan = plan_run(RunRequest(root=root, config=config, runner=runner), run.display)
        with locked_for_step(root, PLAN, run.folder.kubeflow_run):
            root.schema.adopt(*held_ids(root))
            if plan.schema is not None or root.schema.read() == plan.root_schema:
                return _plan_data(run, plan)
        run.display.line(f"! the schema of {root} was changed while the data were read: reading again")
    raise RunFailedError(
        PLAN, f"the schema of {root} was changed {_MAX_TRIES} times while the data were read. Run again"
    )


def _plan_data(run: _NewRun, plan: RunPlan) -> PlannedRun:
    """Begins the run in the root, whose lock is held."""
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from pipelines.kubeflow.training.training_job import training_executor
    from pipelines.runs import execution
    from pipelines.runs.checks.component_checks import component_checks
    from pipelines.runs.checks.schema_keeping import SchemaKeeping
    from pipelines.runs.definitions.csv_to_serving import csv_to_serving
    from pipelines.runs.reasons import reason_of_run
    from pipelines.steps.planning import PlanContext, plan_steps

    root = run.root
    recorder = run.begin(run.named(start_record(plan)))
    record = recorder.record
    if record.spans and plan.spans:
        recorder.note(f"data: {name_spans(record.spans)} of {plan.spans.path}")
    execution.note_plan(plan, recorder, run.display)
    data = execution.stage_data(plan, recorder)
    if data.reasons:
        data.folder.touch()  # keeps the copy from being removed
    plan.profile.check_unchanged()  # CsvExampleGen finds it, too, in a pod that has to start first
    pipeline = csv_to_serving(plan, data)
    context = PlanContext(
        fingerprints=execution.plan_fingerprints(plan, pipeline, record.run_id),
        without_cache=run.without_cache(pipeline.pipeline.components),
    )
    steps = plan_steps(pipeline.pipeline, root, record.run_id, {}, context=context)
    if executor := training_executor(plan):
        steps.executors[pipeline.trainer.id] = executor
    extension = plan.config.pipeline.extend.rpartition(":")[0] if plan.config.pipeline else None
    return run.write(
        steps,
        recorder,
        lambda step, compared: reason_of_run(step, compared, record, root.records),
        {
            component.id: check
            for component, check in component_checks(plan, pipeline, record.baseline_version).items()
        },
        beam_options=step_options(plan.config.beam),
        user_files=tuple(filter(None, (plan.code.module_file, extension))),
        schema_keeping=SchemaKeeping.from_plan(plan),
    )


def _plan_definition(run: _NewRun, config: TfxPipelineConfig) -> PlannedRun:
    from pipelines.kubeflow.compile.user_code import loaded
    from pipelines.runs.tfx_pipeline import check_of_step, new_record, with_origin
    from pipelines.steps.planning import PlanContext, plan_steps
    from pipelines.steps.reasons import reason_of_run

    source = config.pipeline
    run_id = run.folder.kubeflow_run
    with loaded(source) as pipeline, locked_for_step(run.root, PLAN, run_id):
        record = run.named(new_record(run.root, config, pipeline.pipeline_name))
        steps = plan_steps(
            pipeline,
            run.root,
            record.run_id,
            {name: str(value) for name, value in source.parameters.items()},
            context=PlanContext(without_cache=run.without_cache(pipeline.components)),
        )
        record = with_origin(record, steps, run.root)
        checks = {
            step.component: check
            for step in steps.steps
            if (check := check_of_step(step.class_path, record.baseline_version))
        }
        return run.write(
            steps,
            run.begin(record),
            reason_of_run,
            checks,
            beam_options=step_options(config.beam),
            definition=source.model_dump(mode="json", exclude={"parameters"}),
        )


def tidy_runs(root: Root, now: float | None = None) -> list[str]:
    """Closes the records of runs without a sign of life, and removes the files that their steps left.

    `root`: root of the runs; its lock is held. Copies of data that no recent run needed are removed, too.
    """
    now = time.time() if now is None else now
    records = root.records
    closed = []
    for record in records.read_all():
        if (ended := as_lost(root, record, now)) is not record:
            records.write(ended)  # if a step of it still comes, it opens the record again
            closed.append(record.run_id)
    for folder in run_folders(root):
        if newest_change(folder) < now - KEPT_SECS:
            shutil.rmtree(folder, ignore_errors=True)
    old = (root.path / name for name in _OLD_FOLDERS if (root.path / name).is_dir())
    for path in (*old, *root.data.glob("[!.]*")):
        if path.stat().st_mtime < now - KEPT_SECS:  # each Plan touches the data that it needs
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return closed
