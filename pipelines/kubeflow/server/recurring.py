"""Recurring runs of Kubeflow: their schedule, and their description."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Recurrence:
    """Schedule of runs. Either `cron` or `interval_secs` is given."""

    cron: str | None = None  # Six fields, seconds first, in the time zone of the server
    interval_secs: int | None = None  # Seconds between two starts
    catches_up: bool = False  # Starts a run for each missed time; otherwise only for the latest one
    max_concurrency: int = 1  # Number of runs at a time. In one root they wait for each other.

    def as_arguments(self) -> dict[str, Any]:
        return {
            "cron_expression": self.cron,
            "interval_second": self.interval_secs,
            "no_catchup": not self.catches_up,
            "max_concurrency": self.max_concurrency,
        }


@dataclass(frozen=True)
class RecurringRun:
    id: str  # Id of the recurring run
    name: str  # Name of the recurring run; it need not be unique
    when: str  # Description of its schedule
    status: str  # `ENABLED` or `DISABLED`
    missed: str  # `catch-up` or `latest`
    max_concurrency: int  # Number of runs at a time
    pipeline_id: str | None  # Id of its pipeline; None if it was made without one
    # Parameters that its runs set; the others have their defaults.
    parameters: Mapping[str, Any] = field(default_factory=dict)


def described(description: Any) -> RecurringRun:
    trigger, reference = description.trigger, description.pipeline_version_reference
    configured = description.runtime_config
    cron = trigger.cron_schedule if trigger else None
    periodic = trigger.periodic_schedule if trigger else None
    when = "not known"
    if cron is not None and cron.cron:
        when = cron.cron
    elif periodic is not None and periodic.interval_second:
        when = f"every {int(periodic.interval_second)}s"
    return RecurringRun(
        id=description.recurring_run_id,
        name=description.display_name,
        when=when,
        status=str(description.status),
        missed="latest" if description.no_catchup else "catch-up",
        max_concurrency=int(description.max_concurrency or 1),
        pipeline_id=reference.pipeline_id if reference else None,
        parameters=dict((configured.parameters if configured else None) or {}),
    )


def written(parameters: Mapping[str, Any]) -> str:
    """Returns parameters in the form of `--param`, such as `train_steps=500`."""
    return " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in parameters.items()
    )


def dropped_warning(parameters: Mapping[str, Any]) -> str:
    """Returns the warning for a schedule that replaced one with further parameters."""
    options = " ".join(f"--param {written({name: value})}" for name, value in parameters.items())
    return (
        f"the previous schedule set {options}; the new schedule does not, and uses the configuration's "
        "value"
    )
