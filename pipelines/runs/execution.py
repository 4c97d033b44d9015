"""The middle part of a run: executes the components with a runner, and returns the outcome."""

import gc
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pipelines.cache.fingerprints import Fingerprints, code_fingerprint, component_fingerprints
from pipelines.cache.reasons import reason_in_words
from pipelines.checks.component_checks import component_checks
from pipelines.checks.schema_keeping import SchemaKeeping
from pipelines.data.staging import StagedData, stage
from pipelines.definitions.run_plan import RunPlan
from pipelines.errors import BadInputError
from pipelines.plan.data_plan import check_same_files
from pipelines.root.held_models import held_ids
from pipelines.root.records import ComponentRecord, RunOutcome, RunRecords
from pipelines.runners import Runner
from pipelines.runs.push_outcome import push_outcome
from pipelines.runs.recorder import RunRecorder
from pipelines.tabular.column_table import table_lines
from pipelines.terminal.progress import Display, Progress

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

    from pipelines.cache.outcome import CacheOutcome
    from pipelines.definitions.csv_to_serving import CsvToServing

_LOGGER = logging.getLogger(__name__)


def execute(plan: RunPlan, runner: Runner, recorder: RunRecorder, progress: Progress) -> RunOutcome:
    """Runs the components of a plan.

    Args:
      plan: Plan of the run.
      runner: Runner of the components.
      recorder: Recorder of the run.
      progress: Display of the progress.

    Raises:
      RunFailedError: A component failed.
    """
    note_plan(plan, recorder, progress.display)
    progress.thresholds = tuple(one.metric for one in plan.config.evaluator.thresholds or ())
    progress.display.activity("loading TFX ...")
    import components  # noqa: F401  - before any TFX import: it makes TFDV importable
    from pipelines.definitions.csv_to_serving import csv_to_serving
    from pipelines.root.metadata.cleanup import tidy_root
    from pipelines.runners.component_launcher import ComponentLauncher

    gc.freeze()  # what TensorFlow and TFX have imported: to look through it takes half a second each time
    run_id = recorder.record.run_id
    continued = (former.run_id for former in plan.continued)
    for lost in tidy_root(plan.root, run_id, *continued, settings=plan.config.metadata):
        recorder.note(lost)
    held = held_ids(plan.root)
    plan.root.schema.adopt(run_id, *held)
    data = stage_data(plan, recorder)
    plan.root.metadata.folder.mkdir(exist_ok=True)
    pipeline = csv_to_serving(plan, data)
    recorder.add_graph(component_graph(pipeline))
    fingerprints = plan_fingerprints(plan, pipeline, run_id)
    if kept := _kept_transform(plan, pipeline, fingerprints):
        fingerprints[pipeline.transform] = kept
    elif plan.continued:
        recorder.note("Transform has nothing that could be kept: it runs with the new code")
    with runner.beam_options(plan.config.beam, plan.root) as beam_options:
        launcher = ComponentLauncher(
            pipeline.pipeline,
            run_id,
            fingerprints,
            _Observer(pipeline, plan.root.records, recorder, progress),
            checks=_checks(plan, pipeline, recorder),
            beam_options=beam_options,
        )
        _go_on_with_training(plan, pipeline, run_id)
        runner.run(launcher)
    outcome = push_outcome(
        launcher.artifact(pipeline.pusher.outputs["pushed_model"]),
        launcher.artifact(pipeline.evaluator.outputs["evaluation"]).uri,
        plan.root,
    )
    plan.root.schema.adopt(*held, *([run_id] if outcome.held else []))
    return outcome


def note_plan(plan: RunPlan, recorder: RunRecorder, display: Display) -> None:
    """Shows the columns with their kinds, and records the notes on the data."""
    for line in table_lines(plan.columns):
        display.line(f"  {line}")
    of_model = plan.code.plan.notes() if plan.code.plan else ()
    for note in (*plan.findings, *plan.profile.notes(), *of_model):
        recorder.note(note)


def stage_data(plan: RunPlan, recorder: RunRecorder) -> StagedData:
    """Returns the input of CsvExampleGen, and notes the reason if it is a copy of the user's files.

    Raises:
      BadInputError: The data have changed since the plan was made.
    """
    data = stage(plan.profile, plan.code.required_label, plan.root.data, plan.splits)
    check_same_files(plan.config, plan.profile, plan.spans)
    if plan.bad_rows:
        recorder.keep_bad_rows(plan.bad_rows)
    if data.reasons:
        recorder.note(f"CsvExampleGen reads a copy ({data.folder}): {'; '.join(data.reasons)}")
    return data


def component_graph(pipeline: "CsvToServing") -> dict[str, list[str]]:
    """Returns, by the id of each component, the ids of its upstream components."""
    return {
        component.id: sorted(upstream.id for upstream in component.upstream_nodes)
        for component in pipeline.pipeline.components
    }


def plan_fingerprints(plan: RunPlan, pipeline: "CsvToServing", run_id: str) -> Fingerprints:
    """Returns the fingerprint of every component of a run.

    Raises:
      BadInputError: The user's module has changed since it was imported.
    """
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


def _go_on_with_training(plan: RunPlan, pipeline: "CsvToServing", run_id: str) -> None:
    """Makes the Trainer continue the training of the resumed run, or of the runs that this one continued."""
    from components.trainer import unfinished
    from pipelines.root.metadata.store import output_of

    if not (plan.unfinished or plan.continued) or not plan.root.metadata.exists():
        return
    store = plan.root.metadata.open(plan.config.metadata)
    for former in filter(None, (plan.unfinished, *plan.continued)):
        finished = output_of(store, former.run_id, pipeline.trainer.type, "model_run")
        if finished and former.run_id == run_id:
            return
        training = finished or unfinished.unfinished_training(plan.root.artifacts, former.run_id)
        if training:
            unfinished.hand_over(training, run_id, other_code=former.run_id != run_id)
            return


def _kept_transform(plan: RunPlan, pipeline: "CsvToServing", fingerprints: Fingerprints) -> str:
    """Returns the fingerprint of Transform's outputs in a run that this one continues.

    Empty if there are none, or if they cannot come from the cache: then Transform runs.
    """
    from pipelines.root.metadata.store import fingerprints_of

    if not (plan.continued and plan.enable_cache and plan.root.metadata.exists()):
        return ""
    upstream = (pipeline.example_gen, pipeline.statistics_gen, pipeline.schema_gen)
    store = plan.root.metadata.open(plan.config.metadata)
    for former in plan.continued:
        made = fingerprints_of(store, former.run_id)
        kept = made.get(pipeline.transform.type)
        if kept is not None:
            is_same = all(made.get(part.type) == fingerprints[part] for part in upstream)
            return kept if is_same else ""
    return ""


class _Observer:
    """Shows and records the components."""

    def __init__(
        self,
        pipeline: "CsvToServing",
        records: RunRecords,
        recorder: RunRecorder,
        progress: Progress,
    ):
        self._pipeline = pipeline
        self._records = records
        self._recorder = recorder
        self._progress = progress

    def component_started(self, component: "BaseNode") -> None:
        trains = component is self._pipeline.trainer
        self._progress.component_started(component.id, trains=trains)

    def component_finished(
        self,
        component: "BaseNode",
        cached: bool,
        elapsed_secs: float,
        outcome: "CacheOutcome",
    ) -> None:
        former = self._records.read(outcome.run_id) if outcome.run_id else None
        reason = reason_in_words(component.id, outcome, self._recorder.record, former)
        _LOGGER.info("%s %s: %s", component.id, "is cached" if cached else "ran", reason)
        self._progress.component_finished(component.id, cached, elapsed_secs, reason)
        status: Literal["cached", "finished"] = "cached" if cached else "finished"
        self._recorder.add_component(ComponentRecord(component.id, status, elapsed_secs, reason))

    def component_failed(self, component: "BaseNode", elapsed_secs: float) -> None:
        self._progress.component_failed(component.id, elapsed_secs)
        self._recorder.add_component(ComponentRecord(component.id, "failed", elapsed_secs))


def _checks(plan: RunPlan, pipeline: "CsvToServing", recorder: RunRecorder) -> dict[Any, Any]:
    """Returns the checks of the components' outputs, by component."""
    run = recorder.record
    checks: dict[Any, Any] = {
        component: partial(check, findings=recorder, root=plan.root)
        for component, check in component_checks(plan, pipeline, run.baseline_version).items()
    }
    keeping = SchemaKeeping.of_plan(plan)
    if keeping is not None:
        checks[pipeline.schema_gen] = lambda outputs: keeping.prepare(
            outputs["schema"][0].uri, plan.root, run.run_id
        )
    return checks
