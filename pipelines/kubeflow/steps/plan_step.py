"""The step `Plan`, the first one: reads the data, begins the run and plans all other steps."""

import sys
from pathlib import Path

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.spans import name_spans
from pipelines.definitions.run_plan import RunPlan
from pipelines.errors import RunFailedError
from pipelines.kubeflow.compile.beam_steps import check_for_steps, step_options
from pipelines.kubeflow.compile.dag import PLAN, component_roles
from pipelines.kubeflow.component_plan import write_component_plan
from pipelines.kubeflow.run_folder import RunFolder, locked_for_step
from pipelines.kubeflow.steps.component_plans import component_plans
from pipelines.kubeflow.steps.old_runs import tidy_runs
from pipelines.plan.run_plan import RunRequest, plan_run
from pipelines.root import Root
from pipelines.root.held_models import held_ids
from pipelines.runs.execution import note_plan, stage_data
from pipelines.runs.recorder import RunRecorder, start_record
from pipelines.terminal.progress import PlainDisplay

_MAX_TRIES = 3


def plan_on_kubeflow(root: Root, config: PipelineConfig, kubeflow_run: str) -> dict[str, str]:
    """Begins a run, and returns the names of its components' plans by role.

    A retry of the step goes on with the same run.

    Args:
      root: Root of the runs.
      config: Configuration with the parameters of the run applied.
      kubeflow_run: Id of the run on Kubeflow.

    Raises:
      BadInputError: The data or the configuration cannot be used.
      RunFailedError: The root's schema changed while the data were read, or another step held the
        root's lock for too long.
    """
    check_for_steps(config)
    display = PlainDisplay(sys.stderr)
    folder = RunFolder(root, kubeflow_run)
    runner = "beam" if config.beam.has_engine else "local"
    for _ in range(_MAX_TRIES):
        plan = plan_run(RunRequest(root=root, config=config, runner=runner), display)
        with locked_for_step(root, PLAN, kubeflow_run):
            root.schema.adopt(*held_ids(root))
            if plan.schema is not None or root.schema.read() == plan.root_schema:
                return _begin(plan, folder, display)
        display.line(f"! the schema of {root} was changed while the data were read: once more")
    raise RunFailedError(
        PLAN,
        f"the schema of {root} was changed {_MAX_TRIES} times while the data were read. Run again",
    )


def _begin(plan: RunPlan, folder: RunFolder, display: PlainDisplay) -> dict[str, str]:
    """Begins the run in the root, whose lock is held."""
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from pipelines.definitions.csv_to_serving import csv_to_serving
    from pipelines.root.leftovers import remove_leftovers

    root = plan.root
    record = start_record(plan).changed(kubeflow_run=folder.kubeflow_run)
    former = folder.read_run_id()
    if former is not None:
        log = str(root.log(former))
        record = record.changed(run_id=former, log=log)
    run_id = record.run_id
    recorder = RunRecorder(root, record, display)
    folder.write_run(run_id)
    display.line(f"run {run_id} of {record.name!r} in {root}")
    _write_log(Path(record.log), folder.kubeflow_run)
    if record.spans and plan.spans:
        recorder.note(f"data: {name_spans(record.spans)} of {plan.spans.path}")
    note_plan(plan, recorder, display)
    for silent in tidy_runs(root):
        display.line(f"! run {silent} has not ended: its record says so now")
    data = stage_data(plan, recorder)
    if data.reasons:
        data.folder.touch()  # keeps the copy from being removed
    plan.profile.check_unchanged()  # CsvExampleGen finds it, too, in a pod that has to start first
    pipeline = csv_to_serving(plan, data)
    roles = component_roles(pipeline)
    recorder.add_graph(
        {
            component.id: sorted(roles.keys() & {one.id for one in component.upstream_nodes})
            for component in pipeline.pipeline.components
            if component.id in roles
        }
    )
    recorder.begin()
    plans = component_plans(plan, pipeline, run_id, record.baseline_version)
    for lost in remove_leftovers(root, run_id):
        recorder.note(lost)
    folder.write_run(run_id, len(recorder.record.notes), step_options(plan.config.beam))
    return {role: write_component_plan(root, item) for role, item in plans.items()}


def _write_log(log: Path, kubeflow_run: str) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"The steps' own logs are with Kubeflow: run {kubeflow_run}.\n")
