"""Recurring runs of Kubeflow: when they come about, and how they are shown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
      parameters: That its runs are given; the others have their defaults.
    """

    id: str
    name: str
    when: str
    status: str
    missed: str
    max_concurrency: int
    pipeline_id: str | None
    parameters: Mapping[str, Any] = field(default_factory=dict)


def described(found: Any) -> RecurringRun:
    """Returns what a server says of a recurring run.

    Args:
      found: A `V2beta1RecurringRun` of KFP's client.
    """
    trigger, reference = found.trigger, found.pipeline_version_reference
    configured = found.runtime_config
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
        parameters=dict((configured.parameters if configured else None) or {}),
    )


def written(parameters: Mapping[str, Any]) -> str:
    """Returns parameters as `--param` takes them, such as `train_steps=500`."""
    return " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in parameters.items()
    )


def dropped_warning(parameters: Mapping[str, Any]) -> str:
    """Returns what is said when a schedule took the place of one with further parameters."""
    options = " ".join(f"--param {written({name: value})}" for name, value in parameters.items())
    return (
        f"the former schedule had {options}; this one has not, and takes the configuration's value"
    )
