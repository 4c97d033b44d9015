"""The plan of a run: a file in its folder, which the step `Plan` writes and every other step reads."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from pipelines.runs.checks.component_checks import ENDING_CHECKS
from pipelines.steps.step_plan import StepPlan


@dataclass(frozen=True)
class PlannedStep:
    """A step of a run, in plain values."""

    plan: StepPlan  # Its plan, whose name is the step's
    executor: dict[str, Any] | None  # Executor, with its Beam options; None for an Importer
    made_by: str  # Id of the run that has made it, or is to make it
    reason: str  # Why it is reused, or runs
    check: dict[str, Any] | None = None
    code: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Value that KFP's cache compares.

        A step whose folder is gone is to be made by another run, and is not found there; nor is one whose
        outputs passed another check.
        """
        check = ""
        if self.check is not None and self.check["kind"] in ENDING_CHECKS:
            text = json.dumps(self.check, sort_keys=True)
            check = f"/{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return f"{self.made_by}/{self.plan.name}{check}"


@dataclass(frozen=True)
class PlannedRun:
    """The steps of a run, each after those that it depends on."""

    steps: tuple[PlannedStep, ...]
    beam_options: tuple[str, ...] = ()  # Beam options of this run
    # Arguments of `load_pipeline` for a pipeline of the user's own; None for that from a CSV.
    definition: dict[str, Any] | None = None
    user_files: tuple[str, ...] = ()  # The user's Python files, which steps import by their names
    serving_version: str | None = None  # Version that served when the run began
    # Fields of `SchemaKeeping`, from which the root gets its schema; None for none.
    schema_keeping: dict[str, Any] | None = None

    def step(self, component: str) -> PlannedStep:
        for step in self.steps:
            if step.plan.component == component:
                return step
        raise LookupError(component)
