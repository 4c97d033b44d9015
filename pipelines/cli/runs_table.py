"""Shows runs: one when it ends, all of them by `runs`."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.data.spans import describe_spans
from pipelines.root import Root
from pipelines.root.check_records import check_line, shown
from pipelines.root.decision_lines import decision_lines
from pipelines.root.records import RunRecord

_MAX_REASONS, _MAX_LENGTH = 5, 100


def evaluation_lines(record: RunRecord) -> Iterator[str]:
    """Yields the metrics, with those of the baseline, and the checks, for a terminal."""
    if record.metrics:
        width = max(map(len, record.metrics))
        header = f"    {'':{width}}  {'new model':>12}"
        if record.baseline_metrics:
            version = f"version {record.baseline_version}, " if record.baseline_version else ""
            header += f"  {'baseline':>12}  ({version}the same examples)"
        yield header
        for name, value in record.metrics.items():
            line = f"    {name:{width}}  {shown(value):>12}"
            if name in record.baseline_metrics:
                line += f"  {shown(record.baseline_metrics[name]):>12}"
            yield line
    for line in decision_lines(record):
        yield f"  {line}"
    for check in record.checks:
        yield f"  {check_line(check)}"
    for reason in record.not_checked:
        yield f"! not checked: {reason}"


def runs_json(root: Root, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Returns the runs as `runs --json` prints them.

    The status of a run whose version was withdrawn is `withdrawn`.
    """
    return [
        {
            **record.summary(),
            "status": "withdrawn" if _is_withdrawn(record, state) else record.status,
            "name": record.name,
            "started": record.started,
            "finished": record.finished,
            "served": state == "serving",
            "version_state": state,
        }
        for record in records
        for state in [root.versions.state(record.version)]
    ]


def runs_table(root: Root, records: Sequence[RunRecord]) -> Any:
    from rich.table import Table

    has_spans = any(record.spans for record in records)
    names = ("run", "started", "status", "version", "metric", "model", "baseline")
    table = Table(*names, *(("spans",) if has_spans else ()), box=None)
    for record in records:
        state = root.versions.state(record.version)
        name, value = next(iter(record.metrics.items()), ("", None))
        baseline = record.baseline_metrics.get(name)
        version = f" ({record.baseline_version})" if record.baseline_version else ""
        of_baseline = "" if baseline is None else f"{baseline:.4f}{version}"
        version = record.version or ""
        if state in ("serving", "withdrawn", "removed"):
            version += " (live)" if state == "serving" else f" ({state})"
        table.add_row(
            record.run_id,
            record.started,
            "withdrawn" if _is_withdrawn(record, state) else record.shown_status,
            version,
            name,
            "" if value is None else f"{value:.4f}",
            of_baseline,
            *((describe_spans(record.spans),) if has_spans else ()),
        )
    return table


def reason_lines(records: Sequence[RunRecord]) -> Iterator[str]:
    """Yields the reasons why the newest runs pushed nothing, or failed, and where their whole text is."""
    shortened = ""
    for record in [run for run in records if run.reason][-_MAX_REASONS:]:
        text = " ".join((record.reason or "").split())
        if len(text) > _MAX_LENGTH:
            text, shortened = f"{text[: _MAX_LENGTH - 1]}…", record.run_id
        yield f"{record.run_id} {record.shown_status}: {text}"
    if shortened:
        yield f"whole reasons: in `runs --json`, and in the page that `report {shortened}` prints"


def _is_withdrawn(record: RunRecord, state: str | None) -> bool:
    return record.status == "pushed" and state == "withdrawn"
