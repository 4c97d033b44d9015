"""Facts about runs whose records were removed: one line each in `ROOT/runs/pruned.jsonl`."""

import json
import os
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from components.file_systems import sync
from pipelines import atomic_files
from pipelines.root.records import RunFacts, RunRecord, RunRecords


class PrunedRun(RunFacts):
    """A run without a record."""


_FACTS = [field.name for field in fields(PrunedRun)]


class PrunedRuns:
    """The pruned runs of a root."""

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
