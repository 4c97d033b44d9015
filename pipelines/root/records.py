"""The records of runs: one JSON file each, replaced atomically."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, StringConstraints, ValidationError, with_config

from components.file_systems import sync
from pipelines import atomic_files
from pipelines.config.load import check_has_no_pipeline, explain
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.span_selection import parse_selection
from pipelines.errors import BadInputError, DamagedFileError, counted

Status = Literal["running", "pushed", "unchanged", "finished", "held", "not_blessed", "failed", "interrupted"]
"""`finished` is for a pipeline that pushes nothing: it has no Pusher."""


def _with_time_zone(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("the time zone is missing")
    return text


Time = Annotated[str, AfterValidator(_with_time_zone)]
"""Time in ISO 8601, with its time zone."""


def _names_a_span(fields: dict[str, Any]) -> dict[str, Any]:
    version = fields.get("version")
    if parse_selection(fields.get("span")).first is None or not isinstance(version, int | None):
        raise ValueError(f"it names no span. Received: {fields}")
    return fields


SpanFields = Annotated[dict[str, Any], AfterValidator(_names_a_span)]
"""A span that a run has read: `span` (a number, or a date as text), `version`, `num_files`."""

_Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+$")]

Metrics = dict[str, float | None]
"""Metrics by name; None where a metric is not a number."""

_PATHS = ("log", "report")
_MAX_TEST_METRICS = 3  # in the last line

UNFINISHED: tuple[Status, ...] = ("running", "failed", "interrupted")
"""States of runs that `--resume` continues."""


@dataclass(frozen=True)
class ComponentRecord:
    name: str  # Node id
    status: Literal["finished", "cached", "failed"]
    elapsed_secs: float  # Wall time
    reason: str = ""  # Why it ran, or why it did not have to, in words; empty if unknown
    step: str = ""  # Name of its step, see `pipelines.steps`; empty if it was not run as one


@dataclass(frozen=True)
class HeldModel:
    """A model that waits for a decision. Paths in the root are relative to it."""

    model_uri: str  # Folder of the `Model` artifact
    saved_model: str  # Folder of its SavedModel
    warmup: str = ""  # File with the version's warm-up requests; empty without one
    fingerprint: str = ""  # Hash of everything that determines the model; empty if it is not known


@dataclass(frozen=True)
class Decision:
    """The end of a held model: a decision of a person, or a newer run that pushed."""

    # `approved` and `rejected` by a person, or `superseded` by a newer run that pushed.
    kind: Literal["approved", "rejected", "superseded"]
    by: str  # Person who decided, or id of the newer run
    time: str  # UTC, ISO 8601
    because: str = ""  # Reason of the person; empty for a newer run

    def __str__(self) -> str:
        by = f"run {self.by}, which has pushed" if self.kind == "superseded" else self.by
        return f"{self.kind} by {by}" + (f": {self.because}" if self.because else "")


@dataclass(frozen=True)
class RunOutcome:
    """The end of a run. The attributes are those of `RunRecord`."""

    status: Status
    reason: str | None = None
    version: str | None = None
    is_bad_input: bool = False
    held: HeldModel | None = None


@dataclass(frozen=True)
class VerdictRecord:
    """Results of the evaluation."""

    metrics: Metrics = field(default_factory=dict)  # Metrics on the whole evaluation split
    # Metrics of the previously served model on the same examples.
    baseline_metrics: Metrics = field(default_factory=dict)
    slices: dict[str, Metrics] = field(default_factory=dict)
    # All checks of the model, with their results: see `pipelines.root.check_records`.
    checks: tuple[dict[str, Any], ...] = ()
    not_checked: tuple[str, ...] = ()  # Default checks that were skipped, with the reason
    # Confidence intervals of the metrics of the default checks, low and high.
    intervals: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # Reasons to look at the data before the model is pushed, one sentence each
    # Decisions of a binary model on the evaluation rows: `classes`, the positive one last, `threshold`,
    # `true_positives`, `false_positives`, `false_negatives` and `true_negatives`.
    confusion: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """The part of a run's record that is kept when the record is pruned."""

    # The second in which the run began, such as `20260131-175959`, and `-2` for another run in the same
    # second.
    run_id: str
    name: str
    status: Status
    started: Time  # UTC, ISO 8601
    finished: Time | None = None  # UTC, ISO 8601; None while it runs
    version: _Version | None = None  # Version that was pushed
    # Spans that were read: `span` (a number, or a date as text), `version`, `num_files`.
    spans: tuple[SpanFields, ...] = ()
    # Schedule and its tick, such as `nightly/20260131T030000Z`; None for a run that was started by hand.
    scheduled_by: str | None = None
    # Position in the order of the root's runs, regardless of the clock; a resumed run keeps its number.
    # 0 for the runs of a version of this program that did not number them.
    number: int = 0


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class RunRecord(VerdictRecord, RunFacts):
    """Everything known about a run."""

    config: dict[str, Any]  # Configuration after validation
    data_fingerprint: str  # Fingerprint of the CSV files
    log: str
    code_fingerprint: str = ""  # Fingerprint of the code that Transform and Trainer call; empty if unknown
    # Hashes of its functions and classes, such as `taxi.py:trainer_fn`; for a TFX pipeline those of its
    # file and of its components' code.
    code_definitions: dict[str, str] = field(default_factory=dict)
    mended: str | None = None  # Id of the run whose training it continues under changed code; or None
    reason: str | None = None  # Why it was not pushed; with a version, the error after the push
    not_registered: str | None = None  # Why a pushed version is not in MLflow
    is_bad_input: bool = False  # True if the data or the configuration made it fail
    report: str | None = None
    components: tuple[ComponentRecord, ...] = ()  # Components in the order in which they ran
    notes: tuple[str, ...] = ()  # Notes of the inference and the checks
    warnings: tuple[str, ...] = ()  # Those of the notes that the user should look at
    # Bounds that the user has given for the model: the fields of `ThresholdConfig`.
    thresholds: tuple[dict[str, Any], ...] = ()
    # Version that was served before; for a TFX pipeline the version that it was compared with.
    baseline_version: str | None = None
    serving_version: str | None = None  # Version that was served when the run ended
    columns: tuple[dict[str, Any], ...] = ()
    label_by_split: dict[str, Any] = field(default_factory=dict)
    # Models that were trained to choose the best one: the fields of `Candidate`.
    models: tuple[dict[str, Any], ...] = ()
    kubeflow_run: str | None = None  # Id of the run on Kubeflow Pipelines; None for a run on this machine
    # Metrics on the split `test`, with its number of rows as `example_count`; empty without one.
    test_metrics: Metrics = field(default_factory=dict)
    # Files that were read: `path`, `bytes` and `sha256` of each; `bytes` is None for an import that is not
    # a local file.
    data_files: tuple[dict[str, Any], ...] = ()
    graph: dict[str, list[str]] = field(default_factory=dict)
    # Versions, host and commit, by name: see `describe_environment`.
    environment: dict[str, str] = field(default_factory=dict)
    num_rows: int = 0  # Number of rows in the CSV files; 0 if unknown
    identity: str = ""  # Hash of everything that its result depends on; empty if unknown
    # Run whose results these are, because nothing had changed since; None if components ran.
    same_as: str | None = None
    # Number of rows that were left out because they cannot be read, by reason.
    bad_rows: dict[str, int] = field(default_factory=dict)
    # Model that the gate held because of the doubts; None in a run that repeats a held one.
    held: HeldModel | None = None
    decision: Decision | None = None  # End of the held model; None while it waits
    # Number of times that it was begun: a run that is resumed was begun before. 0 for a scheduled run that
    # failed before it began.
    attempt: int = 1
    # `pending` until the receivers were notified of the end of a scheduled run; then empty, or the reason
    # why that failed.
    notification: str = ""

    @property
    def awaits_decision(self) -> bool:
        """True if the model is held, and nobody has decided; an approval may still lack its push."""
        decided = self.decision is not None and self.decision.kind != "approved"
        return self.status == "held" and self.held is not None and not decided

    @property
    def shown_status(self) -> str:
        """The status for people: of a held model the decision, once there is one."""
        return self.decision.kind if self.decision else self.status

    @property
    def stopped_by(self) -> str:
        """Name of the component that ended the run, or whose verdict kept the model back; empty for none."""
        names = [component.name for component in self.components]
        failed = [component.name for component in self.components if component.status == "failed"]
        if failed or self.status == "failed":  # after a check, the reason names a component that has finished
            named = (self.reason or "").partition(":")[0]
            return failed[0] if failed else named if named in names else ""
        if self.status not in ("not_blessed", "held"):
            return ""
        judge = "ServingCheck" if (self.reason or "").startswith("the ServingCheck") else "Evaluator"
        return judge if judge in names else ""

    @property
    def last_line(self) -> str:
        """Quality of the model on the split `test`, in words; empty without one."""
        metrics = dict(self.test_metrics)
        num_rows = int(metrics.pop("example_count", None) or 0)
        values = ", ".join(
            f"{name} {'not a number' if value is None else f'{value:.5g}'}"
            for name, value in list(metrics.items())[:_MAX_TEST_METRICS]
        )
        rows = counted(num_rows, "test row")
        return f"On the {rows}, which nothing else used: {values}" if num_rows else ""

    def changed(self, **changes: Any) -> "RunRecord":
        """Returns a copy with some fields changed."""
        return replace(self, **changes)

    def step(self, component: str) -> str:
        """Returns the name of the step that a component has finished or reused; empty without one."""
        done = (part for part in self.components if part.name == component and part.status != "failed")
        return next((part.step for part in done), "")

    def section(self, name: str) -> dict[str, Any]:
        """Returns a section of the configuration; empty if it is missing."""
        values = self.config.get(name)
        return values if isinstance(values, dict) else {}

    def validated_config(self) -> PipelineConfig:
        """Returns the configuration; settings added since have their defaults."""
        check_has_no_pipeline(self.config, f"The configuration of run {self.run_id}")
        try:
            # `[metadata]` is of the versions that kept the runs in ML Metadata, too.
            settings = {key: value for key, value in self.config.items() if key != "metadata"}
            return PipelineConfig.model_validate(settings)
        except ValidationError as error:
            raise BadInputError(
                f"The configuration in the record of run {self.run_id} cannot be used: "
                f"{explain(error, None)} Restore the record, or remove it."
            ) from error

    def summary(self) -> dict[str, Any]:
        """Returns the fields of the last line that `run` prints."""
        line = {
            "run_id": self.run_id,
            "status": self.status,
            "version": self.version,
            "metrics": self.metrics,
            "report": self.report,
            "baseline_version": self.baseline_version,
            "baseline_metrics": self.baseline_metrics,
            "checks": list(self.checks),
            "not_checked": list(self.not_checked),
            "serving_version": self.serving_version,
        }
        if_any = {
            "test_metrics": self.test_metrics,
            "bad_rows": self.bad_rows,
            "spans": list(self.spans),
            "scheduled_by": self.scheduled_by,
            "reason": self.reason,
            "not_registered": self.not_registered,
            "confusion": self.confusion,
            "doubts": list(self.doubts),
            "decision": self.decision and asdict(self.decision),
        }
        return line | {name: value for name, value in if_any.items() if value}


class RunRecords:
    """The records of a root.

    Paths inside the root are stored relative to it, and returned as absolute paths: a root can be moved.
    """

    def __init__(self, folder: Path):
        self._root = folder.parent
        self.folder = folder

    def write(self, record: RunRecord) -> None:
        """Stores a record atomically."""
        fields = asdict(record)
        for name in _PATHS:
            if fields[name] and Path(fields[name]).is_relative_to(self._root):
                fields[name] = str(Path(fields[name]).relative_to(self._root))
        atomic_files.write(self.file(record.run_id), json.dumps(fields, indent=1))

    def read_all(self) -> list[RunRecord]:
        """Returns all records, oldest first; unreadable ones are left out, with a warning."""
        records = filter(None, map(self._read_or_warn, self.folder.glob("*.json")))
        return sorted(records, key=lambda record: order_key(record.number, record.run_id))

    def read_begun(self) -> list[RunRecord]:
        """Returns the records of the runs that began, oldest first: without those of `attempt` 0."""
        return [record for record in self.read_all() if record.attempt]

    def newest(self, other_than: str = "") -> RunRecord | None:
        """Returns the record of the newest run that began, or None."""
        begun = (record for record in reversed(self.read_begun()) if record.run_id != other_than)
        return next(begun, None)

    def read(self, run_id: str) -> RunRecord | None:
        """Returns one record, or None when no run has this id."""
        if run_id != Path(run_id).name:  # `../..` would lead to the runs of another root
            return None
        file = self.file(run_id)
        return self._read_or_warn(file) if file.is_file() else None

    def ids(self) -> set[str]:
        """Returns the ids of all runs that have a record, readable or not."""
        return {file.stem for file in self.folder.glob("*.json")}

    def file(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"

    def _read_or_warn(self, file: Path) -> RunRecord | None:
        try:
            record = atomic_files.read_model(file, RunRecord)
            if record.run_id == file.stem:
                return record.changed(
                    log=self._absolute(record.log), report=record.report and self._absolute(record.report)
                )
            # A copy that somebody has made, or the backup of an editor.
            reason = f"it is that of run {record.run_id}"
        except FileNotFoundError:  # another process has just removed it
            return None
        except DamagedFileError as error:
            reason = error.reason
        atomic_files.warn_once(
            f"{file} is not the record of a run and is left out ({reason}). Restore it, or remove it."
        )
        return None

    def _absolute(self, path: str) -> str:
        return str(self._root / path)  # an absolute path stays as it is


def utc_now() -> str:
    """Returns the time, UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def order_key(number: int, run_id: str) -> tuple[int, str, int]:
    """Returns the key by which runs are sorted, oldest first.

    Runs of earlier versions of this program have no number. They come first, by the second in their id,
    and by its suffix within that second.
    """
    date, time, *rest = f"{run_id}--".split("-")
    return number, f"{date}-{time}", next((int(part) for part in rest if part.isdecimal()), 1)


class PrunedRun(RunFacts):
    """A run without a record."""


_FACTS = [field.name for field in fields(PrunedRun)]


class PrunedRuns:
    def __init__(self, folder: Path):
        self._records = RunRecords(folder)
        self._file = folder / "pruned.jsonl"

    def add(self, records: Iterable[RunRecord]) -> None:
        """Records runs whose records are about to be removed; the facts survive a crash from then on."""
        existing_ids = {run.run_id for run in self._read()}
        lines = [
            json.dumps({name: getattr(record, name) for name in _FACTS}) + "\n"
            for record in records
            if record.run_id not in existing_ids
        ]
        if not lines:
            return
        with self._file.open("a+", encoding="utf-8") as stream:
            # A crash may have left half a line: it ends here, and is skipped by the reader.
            content = self._file.read_bytes()
            stream.write("\n" if content and not content.endswith(b"\n") else "")
            stream.writelines(lines)
            stream.flush()
            sync(self._file)

    def read_all(self) -> list[PrunedRun]:
        """Returns the runs without a record, in the order in which they were removed."""
        with_record = self._records.ids()
        return [run for run in self._read() if run.run_id not in with_record]

    def _read(self) -> list[PrunedRun]:
        runs, errors = self._read_with_errors()
        for error in errors:
            atomic_files.warn_once(error)
        return runs

    def errors(self) -> list[str]:
        """Returns one sentence for each line that cannot be read, or for the file."""
        return self._read_with_errors()[1]

    def _read_with_errors(self) -> tuple[list[PrunedRun], list[str]]:
        if not os.path.lexists(self._file):
            return [], []
        if not self._file.is_file():  # reading a pipe or /dev/zero would never end
            return [], [f"{self._file} is not a regular file. Restore it, or remove it."]
        try:
            lines = self._file.read_bytes().split(b"\n")
        except OSError as error:
            return [], [f"{self._file} cannot be read: {error.strerror}. Restore it, or remove it."]
        runs, errors = [], []
        for number, line in enumerate(lines, 1):
            try:
                if line:
                    runs.append(atomic_files.checked(json.loads(line), PrunedRun))
            except (ValueError, RecursionError):
                errors.append(
                    f"{self._file} has a line that is not a pruned run and is ignored: line {number}, "
                    f"{line[:80].decode(errors='replace')!r}. Correct it, or remove it."
                )
        return runs, errors
