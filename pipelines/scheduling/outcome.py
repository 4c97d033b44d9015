"""The outcome of a tick's run, from its last line, or from its record if it was killed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.root import Root
from pipelines.root.history import unfinished_run
from pipelines.root.records import UNFINISHED, RunRecord
from pipelines.scheduling.run_process import last_line
from pipelines.scheduling.ticks import STATUSES, Tick, TickStatus

Ending = Literal["ended", "bad_input", "failed", "busy", "killed"]


@dataclass(frozen=True)
class Outcome:
    """End of one start of a run.

    Attributes:
      ending: `ended` with a verdict; `bad_input`, which no retry can fix; `failed`; `busy`: another run had
        the root; `killed` or stopped before it could end.
      status: Status of the tick, if this is its outcome.
      run_id: Id of the run; None if there is no run.
      reason: Reason why nothing was pushed.
      version: Version that was pushed.
      drifted: True if its data differ from those of the served model.
    """

    ending: Ending
    status: TickStatus = "failed"
    run_id: str | None = None
    reason: str | None = None
    version: str | None = None
    drifted: bool = False


def outcome_of(root: Root, tick: Tick, stdout: Path) -> Outcome:
    """Returns the end of the newest start of a tick's run. Its process has ended.

    Args:
      root: Root of the runs.
      tick: Tick of the run.
      stdout: File with the output of the process.
    """
    line = last_line(stdout)
    if line is not None and line["status"] != "interrupted":
        if line.get("error") == "root_busy":
            return Outcome("busy", reason=line.get("reason"))
        record = root.records.read(line["run_id"]) if line.get("run_id") else None
        ending: Ending = "ended"
        if line["status"] not in STATUSES or line["status"] == "failed":
            is_bad = line.get("error") == "bad_input" or (record and record.is_bad_input)
            ending = "bad_input" if is_bad else "failed"
        status = line["status"] if line["status"] in STATUSES else "failed"
        return Outcome(
            ending,
            cast(TickStatus, status),
            line.get("run_id"),
            line.get("reason"),
            line.get("version"),
            _has_drifted(record),
        )
    record = _record_of(root, tick)
    if record is None or record.status in UNFINISHED:
        return Outcome(
            "killed",
            run_id=record.run_id if record else None,
            reason="it was stopped or killed before it had ended",
        )
    return Outcome(
        "ended",
        cast(TickStatus, record.status),
        record.run_id,
        record.reason,
        record.version,
        _has_drifted(record),
    )


def can_resume(root: Root, tick: Tick) -> bool:
    """Returns whether `--resume` would continue the run of this tick, not another one."""
    unfinished = unfinished_run(root)
    return unfinished is not None and unfinished.scheduled_by == tick.id


def _record_of(root: Root, tick: Tick) -> RunRecord | None:
    """Returns the newest record of a tick's run."""
    of_tick = [one for one in root.records.read_all() if one.scheduled_by == tick.id]
    return of_tick[-1] if of_tick else None


def _has_drifted(record: RunRecord | None) -> bool:
    return record is not None and any(note.startswith(NOTE_PREFIX) for note in record.notes)
