"""Notifications of scheduled runs: one JSON object for each event."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipelines.config.notify import Event
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.ticks import Tick

SCHEMA = 1


@dataclass(frozen=True)
class Notification:
    """One event. Later versions may add keys, but remove none while `schema` stays the same.

    Attributes:
      id: Id of the event, the same whenever its notification is repeated.
      event: Kind of event, see `NotifyConfig.on`.
      time: Time at which it was noticed, UTC, ISO 8601.
      text: One sentence for people.
      schedule: Name of the schedule.
      root: Path of the root.
      host: Name of the machine.
      tick: Key of the tick.
      due: Time at which the tick was due.
      run_id: Id of the run; None if there is none.
      status: Status of the tick.
      reason: Reason why nothing was pushed.
      version: Version that was pushed.
      serving_version: Version that was served when the run ended.
      metrics: Metrics of the model, by name.
      notes: Findings in the data, if they are the event.
      report: Path of the report.
      log: Path of the log.
      missed: Fields of the event `missed`: `count`, and the due times `first` and `last`.
      schema: Version of this format.
    """

    id: str
    event: Event
    time: str
    text: str
    schedule: str
    root: str
    host: str
    tick: str
    due: str
    run_id: str | None = None
    status: str | None = None
    reason: str | None = None
    version: str | None = None
    serving_version: str | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    report: str | None = None
    log: str | None = None
    missed: dict[str, Any] | None = None
    schema: int = SCHEMA

    def as_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return asdict(self)


def of_outcome(root: Root, tick: Tick, time: str, output: Path | None) -> list[Notification]:
    """Returns the events of a tick that has its outcome.

    Args:
      root: Root of the runs.
      tick: Finished tick.
      time: Current time.
      output: Output file of its run, for a run that has no log.
    """
    record = root.records.read(tick.run_id) if tick.run_id else None
    if tick.status is None:
        raise ValueError(f"A tick that is done has a status. Received: tick={tick}")
    source = root.records.read(record.same_as) if record and record.same_as else None
    is_known = source is not None and source.status == "held"  # told when it was held, or decided
    notifications = []
    if not (is_known and tick.status in ("held", "not_blessed")):
        notifications.append(
            _of_run(root, tick, time, record, tick.status, _sentence(tick), output)
        )
    if tick.drifted:
        notes = _anomalies(record)
        text = f"the data have changed: {notes[0] if notes else 'see the report'}"
        notifications.append(_of_run(root, tick, time, record, "drifted", text, output, notes))
    return notifications


def of_missed(root: Root, late: Sequence[Tick], time: str) -> Notification:
    """Returns the event of ticks that should have been started by now.

    Args:
      root: Root of the runs.
      late: Late ticks, at least one, oldest first.
      time: Current time.
    """
    first, last = late[0], late[-1]
    many = f"{len(late)} runs were" if len(late) > 1 else "a run was"
    between = f"between {first.due} and {last.due}" if len(late) > 1 else f"at {first.due}"
    return Notification(
        id=f"{last.schedule}-{first.key}-missed",
        event="missed",
        time=time,
        text=f"{first.schedule}: {many} due {between} and had not started by {time}",
        schedule=first.schedule,
        root=str(root),
        host=os.uname().nodename,
        tick=last.key,
        due=last.due,
        missed={"count": len(late), "first": first.due, "last": last.due},
    )


def of_overtaken(root: Root, tick: Tick, time: str) -> Notification:
    """Returns the event of a span that arrived after a later one and is not run.

    Args:
      root: Root of the runs.
      tick: Skipped tick of the span.
      time: Current time.
    """
    return Notification(
        id=f"{tick.schedule}-{tick.key}-overtaken",
        event="missed",
        time=time,
        text=f"{tick.schedule}: {tick.reason}",
        schedule=tick.schedule,
        root=str(root),
        host=os.uname().nodename,
        tick=tick.key,
        due=tick.due,
        reason=tick.reason,
        missed={"count": 1, "first": tick.due, "last": tick.due},
    )


def _of_run(
    root: Root,
    tick: Tick,
    time: str,
    record: RunRecord | None,
    event: Event,
    text: str,
    output: Path | None,
    notes: tuple[str, ...] = (),
) -> Notification:
    log = record.log if record else str(output) if output else None
    return Notification(
        id=f"{tick.schedule}-{tick.key}-{event}",
        event=event,
        time=time,
        text=f"{tick.schedule}: {text}",
        schedule=tick.schedule,
        root=str(root),
        host=os.uname().nodename,
        tick=tick.key,
        due=tick.due,
        run_id=tick.run_id,
        status=tick.status,
        reason=tick.reason,
        version=tick.version,
        serving_version=record.serving_version if record else None,
        metrics=record.metrics if record else {},
        notes=notes,
        report=record.report if record else None,
        log=log,
    )


def _sentence(tick: Tick) -> str:
    subject = f"run {tick.run_id}" if tick.run_id else f"the run that was due at {tick.due}"
    if tick.status == "pushed":
        return f"{subject} pushed version {tick.version}" if tick.version else f"{subject} pushed"
    words = {
        "unchanged": "pushed nothing new",
        "finished": "finished",
        "held": "holds its model until `approve` decides",
        "not_blessed": "was not blessed",
    }
    text = f"{subject} {words.get(str(tick.status), 'failed')}"
    return f"{text}: {tick.reason}" if tick.reason else text


def _anomalies(record: RunRecord | None) -> tuple[str, ...]:
    from pipelines.artifacts.anomalies import NOTE_PREFIX

    notes = record.notes if record else ()
    return tuple(note.removeprefix(NOTE_PREFIX) for note in notes if note.startswith(NOTE_PREFIX))
