"""The files of the pages: `ROOT/runs/<run_id>.html` and `ROOT/runs/index.html`, whole or not at all.

A page says in its head what it was made of. As long as that has not changed, it is not made again.
"""

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from pipelines.run_details import RunDetails
from pipelines.run_record import RunRecord, RunRecords
from pipelines.serving import serving_versions, withdrawn_versions

INDEX = "index.html"
_HEAD_BYTES = 2_000


def write_pages(root: Path, record: RunRecord, target: Path) -> None:
    """Writes the report of a run, and the index anew.

    Args:
      root: Of the pipeline.
      record: As the run has ended; what is on disk may not say so yet.
      target: Of the report.
    """
    known = {one.run_id: one for one in RunRecords(root).read_all()}
    records = [*({**known, record.run_id: record}).values()]
    _write_report(root, records, record, target, report_state(root, records, record))
    ended = [
        record.changed(report=str(target)) if one.run_id == record.run_id else one
        for one in records
    ]
    _write_index(root, ended, root / "runs" / INDEX, index_state(root, ended))


def report_file(
    root: Path, records: Sequence[RunRecord], run_id: str, output: Path | None = None
) -> Path:
    """Returns the report of a run, which is made if it is not up to date.

    Args:
      root: Of the pipeline.
      records: All runs, oldest first.
      run_id: The run, one of them.
      output: Where it goes. Default: beside the record.
    """
    (record,) = (one for one in records if one.run_id == run_id)
    target = root / "runs" / f"{run_id}.html"
    state = report_state(root, records, record)
    if not _is_made_of(target, state):
        _write_report(root, records, record, output or target, state)
        return output or target
    return _copied(target, output)


def index_file(root: Path, records: Sequence[RunRecord], output: Path | None = None) -> Path:
    """Returns the index of a root, which is made if it is not up to date.

    Args:
      root: Of the pipeline.
      records: All runs, oldest first.
      output: Where it goes. Default: beside the records.
    """
    target = root / "runs" / INDEX
    state = index_state(root, records)
    if not _is_made_of(target, state):
        _write_index(root, records, output or target, state)
        return output or target
    return _copied(target, output)


def report_state(root: Path, records: Sequence[RunRecord], record: RunRecord) -> str:
    """Returns a hash of what a report is made of."""
    details = [
        (file.name, file.stat().st_size, file.stat().st_mtime_ns)
        for file in RunDetails(root, record.same_as or record.run_id).files()
    ]
    others = [(one.run_id, one.status, one.version, one.baseline_version) for one in records]
    return _hash(root, _fields(record), details, others)


def index_state(root: Path, records: Sequence[RunRecord]) -> str:
    """Returns a hash of what an index is made of."""
    return _hash(
        root,
        [
            (
                one.run_id,
                one.status,
                one.started,
                one.finished,
                one.version,
                one.reason,
                one.metrics,
            )
            for one in records
        ],
    )


def _fields(record: RunRecord) -> object:
    return dataclasses.asdict(record.changed(report=None))


def _hash(root: Path, *parts: object) -> str:
    templates_of = [
        (file.name, file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(Path(__file__).parent.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    ]
    versions = (serving_versions(root), withdrawn_versions(root))
    text = json.dumps([parts, versions, templates_of], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _is_made_of(file: Path, state: str) -> bool:
    try:
        with file.open("rb") as stream:
            return f'name="made-of" content="{state}"'.encode() in stream.read(_HEAD_BYTES)
    except FileNotFoundError:
        return False


def _copied(file: Path, output: Path | None) -> Path:
    if output is None or output.resolve() == file:
        return file
    shutil.copyfile(file, output)
    return output


def _write_report(
    root: Path, records: Sequence[RunRecord], record: RunRecord, target: Path, state: str
) -> None:
    from pipelines.report.context import Context
    from pipelines.report.page import render_report

    details = RunDetails(root, record.same_as or record.run_id).read_all()
    has_index = target.resolve().parent == root / "runs"
    context = Context(record, root, details, records)
    _write(target, render_report(context, state, has_index))


def _write_index(root: Path, records: Sequence[RunRecord], target: Path, state: str) -> None:
    from pipelines.report.index_page import render_index

    _write(target, render_index(root, records, state))


def _write(target: Path, text: str) -> None:
    """Writes a file so that a reader sees either the old or the new one, whoever else writes it."""
    partial = target.with_name(f".{target.name}.{os.uname().nodename}-{os.getpid()}.partial")
    partial.write_text(f"{text.rstrip()}\n", encoding="utf-8")
    partial.replace(target)
