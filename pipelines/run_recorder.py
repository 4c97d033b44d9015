"""The last part of a run: its record on disk and its report, kept up to date from the first moment."""

from typing import Any

from pipelines.evaluation import merge_thresholds
from pipelines.fingerprints import code_definitions, code_fingerprint
from pipelines.progress import Display
from pipelines.report.html import write_report
from pipelines.run_plan import RunPlan
from pipelines.run_record import (
    ComponentRecord,
    Metrics,
    RunOutcome,
    RunRecord,
    RunRecords,
    new_run_id,
    utc_now,
)


def start_record(plan: RunPlan) -> RunRecord:
    """Returns the record of a run that begins, or that goes on where it was interrupted."""
    unfinished = plan.unfinished
    run_id = unfinished.run_id if unfinished else new_run_id(RunRecords(plan.root).read_all())
    return RunRecord(
        run_id=run_id,
        name=plan.config.name,
        status="running",
        started=unfinished.started if unfinished else utc_now(),
        config=plan.config.model_dump(mode="json"),
        data_fingerprint=plan.profile.fingerprint,
        log=str(plan.root / "logs" / f"{run_id}.log"),
        code_fingerprint=code_fingerprint(plan.code),
        code_definitions={
            name: definition.digest for name, definition in code_definitions(plan.code).items()
        },
        mended=plan.mended[0].run_id if plan.mended else None,
        columns=tuple(vars(row) for row in plan.columns),
        thresholds=tuple(bound.model_dump() for bound in merge_thresholds(plan.code.thresholds)),
    )


class RunRecorder:
    """Keeps the record of one run on disk up to date.

    Args:
      records: Where it is kept.
      record: As the run begins.
      display: Shows the notes.
    """

    def __init__(self, records: RunRecords, record: RunRecord, display: Display):
        self._records = records
        self._display = display
        self.record = record
        self._change()

    def note(self, text: str) -> None:
        """Shows and records what the inference or a check has to say."""
        self._display.line(f"! {text}")
        self._change(notes=(*self.record.notes, text))

    def add_component(self, component: ComponentRecord) -> None:
        """Records that a component has ended."""
        self._change(components=(*self.record.components, component))

    def add_verdict(
        self, metrics: Metrics, baseline_metrics: Metrics, slices: dict[str, Metrics]
    ) -> None:
        """Records what the evaluation has found."""
        self._change(metrics=metrics, baseline_metrics=baseline_metrics, slices=slices)

    def add_label_comparison(self, comparison: dict[str, Any]) -> None:
        """Records how the label is distributed in the splits."""
        self._change(label_by_split=comparison)

    def end(self, outcome: RunOutcome) -> None:
        """Writes the report, and then records how the run ended: what is recorded is complete."""
        self.record = self.record.changed(finished=utc_now(), **vars(outcome))
        report = self._records.folder / f"{self.record.run_id}.html"
        write_report(self.record, report)
        self._change(report=str(report))

    def _change(self, **changes: Any) -> None:
        self.record = self.record.changed(**changes)
        self._records.write(self.record)
