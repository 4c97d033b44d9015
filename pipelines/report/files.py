"""Writes the pages `ROOT/runs/<run_id>.html` and `ROOT/runs/index.html`, each atomically.

The head of a page has a hash of its source data. The page is only made again when they have changed.
"""

import dataclasses
import errno
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines import atomic_files
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import read_runs
from pipelines.root.records import RunRecord

_HEAD_BYTES = 2_000
_PLOTS = "plots.json.gz"


def write_pages(root: Root, record: RunRecord, target: Path) -> None:
    """Writes the report of a run and the index, and updates the report of the version that served before."""
    recorded = {other.run_id: other for other in root.records.read_all()}
    records = [*({**recorded, record.run_id: record}).values()]
    _write_report(root, records, record, target, report_state(root, records, record))
    if record.status == "pushed" and record.baseline_version:
        for other in records:  # the run of the version that no longer serves
            page = root.report(other.run_id)
            if other.version == record.baseline_version and page.exists():
                _write_report(root, records, other, page, report_state(root, records, other))
    for other in records:
        page = root.report(other.run_id)
        if other.decision and other.decision.by == record.run_id and page.exists():
            _write_report(root, records, other, page, report_state(root, records, other))
    _write_index(root, records, root.index, index_state(root, records))


def write_index(root: Root) -> None:
    """Updates the index, if it exists, after a change outside of a run."""
    if root.index.exists():
        index_file(root, read_runs(root))


def report_file(root: Root, records: Sequence[RunRecord], run_id: str, output: Path | None = None) -> Path:
    """Returns the path of a run's report, which is made if it is not up to date."""
    (record,) = (candidate for candidate in records if candidate.run_id == run_id)
    try:
        return _up_to_date(
            root.report(run_id),
            report_state(root, records, record),
            output,
            lambda target, state: _write_report(root, records, record, target, state),
        )
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise BadInputError(
            f"No report can be made of {root.records.file(run_id)} and the files in "
            f"{root.details(record.same_as or run_id).folder}: {type(error).__name__}: {error}. Restore the "
            "damaged file; a report does not need the files in that folder."
        ) from error


def index_file(root: Root, records: Sequence[RunRecord], output: Path | None = None) -> Path:
    """Returns the path of a root's index, which is made if it is not up to date."""
    return _up_to_date(
        root.index,
        index_state(root, records),
        output,
        lambda target, state: _write_index(root, records, target, state),
    )


def _up_to_date(beside: Path, state: str, output: Path | None, write: Callable[[Path, str], None]) -> Path:
    """Returns the path of a page, which is made if it is not up to date.

    `output`: path of the page. Default: next to the records. Elsewhere it has no links to other pages.
    """
    target = output or beside
    if not (_is_same_file(target, beside) and _is_current(beside, state)):
        write(target, state)
    return target


def report_state(root: Root, records: Sequence[RunRecord], record: RunRecord) -> str:
    """Returns a hash of the source data of a report."""
    details = [
        (file.name, file.stat().st_size, file.stat().st_mtime_ns)
        for file in root.details(record.same_as or record.run_id).files()
    ]
    others = [(other.run_id, other.shown_status, other.version, other.baseline_version) for other in records]
    return _hash(root, dataclasses.asdict(record.changed(report=None)), details, others)


def index_state(root: Root, records: Sequence[RunRecord]) -> str:
    """Returns a hash of the source data of an index."""
    return _hash(
        root,
        [
            (
                run.run_id,
                run.shown_status,
                run.started,
                run.finished,
                run.version,
                run.reason,
                run.metrics,
                root.report(run.run_id).exists(),
            )
            for run in records
        ],
    )


def _hash(root: Root, *parts: object) -> str:
    templates_of = [
        (file.name, file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(Path(__file__).parent.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    ]
    versions = (root.versions.served(), root.versions.withdrawn())
    text = json.dumps([parts, versions, templates_of], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _is_current(file: Path, state: str) -> bool:
    try:
        with file.open("rb") as stream:
            return f'name="made-of" content="{state}"'.encode() in stream.read(_HEAD_BYTES)
    except FileNotFoundError:
        return False


def _is_same_file(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _write_report(
    root: Root, records: Sequence[RunRecord], record: RunRecord, target: Path, state: str
) -> None:
    from pipelines.report.context import Context
    from pipelines.report.page import render_report
    from pipelines.report.plots import KeptPlots

    details = root.details(record.same_as or record.run_id)
    context = Context(record, root, details.read_all(), records)
    plots = KeptPlots(details.folder / _PLOTS)
    _write(target, render_report(context, state, _is_in_root(root, target), plots.to_svg))
    plots.write()


def _write_index(root: Root, records: Sequence[RunRecord], target: Path, state: str) -> None:
    from pipelines.report.page import render_index
    from pipelines.report.plots import KeptPlots

    plots = KeptPlots(root.runs / f".index.{_PLOTS}")
    _write(target, render_index(root, records, state, _is_in_root(root, target), plots.to_svg))
    plots.write()


def _write(target: Path, text: str) -> None:
    if not target.parent.is_dir():  # a folder that the user has mistyped is not made
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    atomic_files.write(target, text)


def _is_in_root(root: Root, target: Path) -> bool:
    """Returns True if a page is next to the records of a root, where its relative links work."""
    return _is_same_file(target.parent, root.runs)
