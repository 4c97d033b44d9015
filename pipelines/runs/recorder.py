"""Keeps the record of a run on disk up to date, and writes its report."""

import logging
import shutil
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from pipelines.data.bad_rows import BadRows
from pipelines.report.files import write_pages
from pipelines.root import Root
from pipelines.root.history import initial_fields, mark_killed, supersede_held
from pipelines.root.records import ComponentRecord, RunOutcome, RunRecord, utc_now
from pipelines.runs.checks.component_checks import ComponentCheck
from pipelines.runs.definitions.evaluation import merge_thresholds
from pipelines.runs.definitions.fingerprints import code_definitions, code_fingerprint, file_hashes
from pipelines.runs.definitions.run_plan import RunPlan
from pipelines.runs.environment import describe_environment
from pipelines.runs.mlflow_registry import register_versions
from pipelines.runs.unchanged_run import run_identity
from pipelines.terminal.progress import Display, Progress

if TYPE_CHECKING:
    from pipelines.runs.checks.component_checks import Findings
    from pipelines.runs.openlineage_events import OpenLineageEvents
    from pipelines.steps.step_folders import FinishedStep
    from pipelines.steps.step_plan import StepPlan

_LOGGER = logging.getLogger(__name__)


def start_record(plan: RunPlan) -> RunRecord:
    """Returns the record of a run that begins or resumes; the root's lock is held."""
    initial = initial_fields(plan.root, plan.unfinished, plan.scheduled_by)
    run_id = initial["run_id"]
    return RunRecord(
        **initial,
        name=plan.config.name,
        status="running",
        config=plan.config.model_dump(mode="json"),
        data_fingerprint=plan.profile.fingerprint,
        num_rows=plan.profile.num_rows,
        log=str(plan.root.log(run_id)),
        code_fingerprint=code_fingerprint(plan.code),
        code_definitions={
            name: definition.digest for name, definition in code_definitions(plan.code).items()
        },
        mended=plan.continued[0].run_id if plan.continued else None,
        columns=tuple(asdict(row) for row in plan.columns),
        thresholds=tuple(bound.model_dump() for bound in merge_thresholds(plan.code.thresholds)),
        spans=plan.spans.as_records() if plan.spans else (),
        baseline_version=plan.root.versions.served_before(run_id),
        data_files=file_hashes(plan.profile),
        environment=describe_environment(),
        identity="" if plan.continued else plan_identity(plan),
        bad_rows=plan.bad_rows.counts if plan.bad_rows else {},
    )


def plan_identity(plan: RunPlan) -> str:
    """Returns a hash of everything that the result of a plan depends on."""
    schema = plan.root_schema
    return run_identity(
        plan.config,
        plan.profile.fingerprint,
        plan.spans.as_records() if plan.spans else (),
        schema.fingerprint if schema else "",
        plan.root.schema.accepted_run(schema),
    )


def ended_record(root: Root, record: RunRecord, outcome: RunOutcome) -> RunRecord:
    return record.changed(finished=utc_now(), serving_version=root.versions.serving(), **vars(outcome))


def lineage_events(root: Root, record: RunRecord) -> "OpenLineageEvents | None":
    """Returns the sender of a run's OpenLineage events; None if nobody wants them."""
    if not record.section("lineage").get("openlineage"):
        return None
    try:
        from pipelines.runs.openlineage_events import OpenLineageEvents

        return OpenLineageEvents(root, record)
    except Exception:  # such as a record that was edited, or a broken openlineage.yml
        _LOGGER.exception("run %s has no OpenLineage events", record.run_id)
        return None


def record_killed_runs(root: Root) -> None:
    """Corrects the records of killed runs, and sends the ends of their OpenLineage runs."""
    for record in mark_killed(root):
        if events := lineage_events(root, record):
            events.run_killed(record)


class RunRecorder:
    """Keeps the record of one run on disk up to date."""

    def __init__(self, root: Root, record: RunRecord, display: Display):
        self.root = root
        self._display = display
        self.record = record
        self._change()
        self._events = lineage_events(root, record)

    def begin(self) -> None:
        """Tells that the run begins, or begins again."""
        if self._events:
            self._events.run_started()
        elif self.record.section("lineage").get("openlineage"):
            self.warn("this run sends no OpenLineage events; see its log for the reason")

    def note(self, text: str) -> None:
        """Shows and records what was detected, chosen or done."""
        self._display.line(f"i {text}")
        self._change(notes=(*self.record.notes, text))

    def warn(self, text: str) -> None:
        """Shows and records what the user should look at."""
        self._display.line(f"! {text}")
        self._change(notes=(*self.record.notes, text), warnings=(*self.record.warnings, text))

    def component_started(self, name: str) -> None:
        """Tells that a component begins."""
        if self._events:
            self._events.component_started(name)

    def add_component(self, component: ComponentRecord) -> None:
        self._change(components=(*self.record.components, component))
        if self._events:
            self._events.component_ended(component)

    def add_findings(self, findings: "Findings") -> None:
        """Shows the notes of a check, stores its details, and records the rest."""
        for section, values in findings.details.items():
            self.root.details(self.record.run_id).write(section, values)
        for fact in findings.facts:
            self._display.line(f"i {fact}")
        for note in findings.notes:
            self._display.line(f"! {note}")
        changes = dict(vars(findings.verdict)) if findings.verdict else {}
        changes["warnings"] = (*self.record.warnings, *findings.notes)
        if findings.label_comparison:
            changes["label_by_split"] = findings.label_comparison
        if findings.models:
            changes["models"] = findings.models
        if findings.test_metrics:
            changes["test_metrics"] = findings.test_metrics
        self._change(notes=(*self.record.notes, *findings.facts, *findings.notes), **changes)

    def keep_bad_rows(self, bad_rows: BadRows) -> None:
        """Keeps the rows that were left out in a file."""
        file = self.root.details(self.record.run_id).bad_rows
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bad_rows.file, file)
        self.note(f"data: the rows that were left out are in {file}")

    def add_graph(self, graph: dict[str, list[str]]) -> None:
        """Records the upstream components of each component."""
        self._change(graph=graph)

    def end(self, outcome: RunOutcome, tidy: Callable[[], None] = lambda: None) -> None:
        """Records the end of the run, and then writes the pages.

        A page that is missing because the process was killed in between is made on demand.
        """
        self.record = ended_record(self.root, self.record, outcome)
        self._change()
        if outcome.status == "pushed":
            for run_id in supersede_held(self.root, self.record):
                self.note(f"the held model of run {run_id} is superseded by the model of this run")
        if self._events and (lost := self._events.run_ended(self.record)):
            self.warn(lost)
        tidy()
        report = self.root.report(self.record.run_id)
        try:
            write_pages(self.root, self.record, report)
        except Exception as error:  # a page that cannot be drawn must not cost the run's record
            _LOGGER.exception("the report of run %s could not be made", self.record.run_id)
            self.warn(f"the report could not be made: {type(error).__name__}: {error}")
        else:
            self._change(report=str(report))
        if problem := register_versions(self.root, self.record):
            self._display.line(f"! {problem}")
            self._change(not_registered=problem)

    def _change(self, **changes: Any) -> None:
        self.record = self.record.changed(**changes)
        self.root.records.write(self.record)


class StepRecorder:
    """Shows, records and checks the steps of a run.

    `check_of`: returns the check of a step; None for none. Reused steps are checked as well.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        progress: Progress,
        check_of: Callable[["FinishedStep"], ComponentCheck | None],
        after_step: Callable[["FinishedStep"], None] = lambda step: None,
    ):
        self._recorder = recorder
        self._progress = progress
        self._check_of = check_of
        self._after_step = after_step
        self.ran: set[str] = set()

    def step_started(self, plan: "StepPlan") -> None:
        trains = plan.component.partition(".")[0] == "Trainer"
        self._progress.component_started(plan.component, trains=trains)
        self._recorder.component_started(plan.component)

    def step_finished(self, step: "FinishedStep", reused: bool, elapsed_secs: float, reason: str) -> None:
        """Records that a step has its outputs, and checks them."""
        if not reused:
            self.ran.add(step.component)
        _LOGGER.info("%s %s: %s", step.component, "is cached" if reused else "ran", reason)
        self._progress.component_finished(step.component, reused, elapsed_secs, reason)
        status: Literal["cached", "finished"] = "cached" if reused else "finished"
        self._recorder.add_component(ComponentRecord(step.component, status, elapsed_secs, reason, step.name))
        if check := self._check_of(step):
            outputs = {key: [step.artifact(key)] for key in step.outputs}
            findings = check(outputs, self._recorder.root)
            self._recorder.add_findings(findings)
            if findings.failure:
                raise findings.failure
        self._after_step(step)

    def step_failed(self, plan: "StepPlan", elapsed_secs: float) -> None:
        """Records that a step has raised an error."""
        self._progress.component_failed(plan.component, elapsed_secs)
        self._recorder.add_component(ComponentRecord(plan.component, "failed", elapsed_secs))
