"""Facts about runs whose records were removed: one line each in `ROOT/runs/pruned.jsonl`."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from components.file_systems import sync
from pipelines import atomic_files
from pipelines.root.records import RunRecord, RunRecords, SpanFields, Time


@dataclass(frozen=True)
class PrunedRun:
    """A run without a record. The attributes are those of `RunRecord`."""

    run_id: str
    name: str
    status: str
    started: Time
    finished: Time | None
    version: str | None
    spans: tuple[SpanFields, ...]
    scheduled_by: str | None = None  # lines of earlier versions of this program have neither
    number: int = 0


class PrunedRuns:
    """The pruned runs of a root.

    Args:
      folder: Folder of the records of runs.
    """

    def __init__(self, folder: Path):
        self._records = RunRecords(folder)
        self._file = folder / "pruned.jsonl"

    def add(self, records: Iterable[RunRecord]) -> None:
        """Records runs whose records are about to be removed; the facts survive a crash from then on."""
        known = {run.run_id for run in self._read()}
        lines = [
            json.dumps(asdict(_pruned(record))) + "\n"
            for record in records
            if record.run_id not in known
        ]
        if not lines:
            return
        with self._file.open("a+", encoding="utf-8") as stream:
            # A crash may have left half a line: it ends here, and is skipped by the reader.
            stream.write("\n" if not self._ends_a_line() else "")
            stream.writelines(lines)
            stream.flush()
            sync(self._file)

    def read_all(self) -> list[PrunedRun]:
        """Returns the runs without a record, in the order in which they were removed."""
        with_record = self._records.ids()
        return [run for run in self._read() if run.run_id not in with_record]

    def _read(self) -> list[PrunedRun]:
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [run for line in lines if line and (run := self._parsed(line)) is not None]

    def _parsed(self, line: str) -> PrunedRun | None:
        try:
            return atomic_files.checked(json.loads(line), PrunedRun)
        except (ValueError, RecursionError):
            atomic_files.warn_once(f"{self._file} has a line that is no pruned run: {line[:80]}")
            return None

    def _ends_a_line(self) -> bool:
        text = self._file.read_bytes()
        return not text or text.endswith(b"\n")


def _pruned(record: RunRecord) -> PrunedRun:
    return PrunedRun(**{field.name: getattr(record, field.name) for field in fields(PrunedRun)})
