"""Recurring runs of Kubeflow: when they come about, and how they are shown."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Recurrence:
    """When runs start. Either `cron` or `interval_secs` is given.

    Attributes:
      cron: Six fields, seconds first, in the time zone of the server.
      interval_secs: Between two starts.
      catches_up: Whether each time that was missed is made up for; otherwise the latest one.
      max_concurrency: Runs at a time. In one root they wait for each other.
    """

    cron: str | None = None
    interval_secs: int | None = None
    catches_up: bool = False
    max_concurrency: int = 1

    def as_arguments(self) -> dict[str, Any]:
        """Returns the arguments of `kfp.Client.create_recurring_run`."""
        return {
            "cron_expression": self.cron,
            "interval_second": self.interval_secs,
            "no_catchup": not self.catches_up,
            "max_concurrency": self.max_concurrency,
        }


@dataclass(frozen=True)
class RecurringRun:
    """A recurring run on the server.

    Attributes:
      id: Of the recurring run.
      name: Several may have one.
      when: When it starts runs.
      status: `ENABLED` or `DISABLED`.
      missed: `catch-up` or `latest`.
      max_concurrency: Runs at a time.
      pipeline_id: Of its pipeline; None if it was made without one.
    """

    id: str
    name: str
    when: str
    status: str
    missed: str
    max_concurrency: int
    pipeline_id: str | None


def described(found: Any) -> RecurringRun:
    """Returns what a server says of a recurring run.

    Args:
      found: A `V2beta1RecurringRun` of KFP's client.
    """
    trigger, reference = found.trigger, found.pipeline_version_reference
    cron = trigger.cron_schedule if trigger else None
    periodic = trigger.periodic_schedule if trigger else None
    when = "not known"
    if cron is not None and cron.cron:
        when = cron.cron
    elif periodic is not None and periodic.interval_second:
        when = f"every {int(periodic.interval_second)}s"
    return RecurringRun(
        id=found.recurring_run_id,
        name=found.display_name,
        when=when,
        status=str(found.status),
        missed="latest" if found.no_catchup else "catch-up",
        max_concurrency=int(found.max_concurrency or 1),
        pipeline_id=reference.pipeline_id if reference else None,
    )
