"""The plan of a run: a file in its folder, which the step `Plan` writes and every other step reads."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from pipelines.runs.checks.component_checks import ENDING_CHECKS
from pipelines.steps.step_plan import StepPlan


@dataclass(frozen=True)
class PlannedStep:
    """A step of a run, in plain values.

    Attributes:
      plan: Its plan, whose name is the step's.
      executor: Executor, with its Beam options; None for an Importer.
      made_by: Id of the run that has made it, or is to make it.
      reason: Why it is reused, or runs.
      check: Check of its outputs, see `check_as_json`; None for none.
      code: Fingerprints of the code that it runs, as `Plan` saw it.
    """

    plan: StepPlan
    executor: dict[str, Any] | None
    made_by: str
    reason: str
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
    """The steps of a run, each after those that it depends on.

    Attributes:
      steps: The steps.
      beam_options: Beam options of this run.
      definition: Arguments of `load_pipeline` for a pipeline of the user's own; None for that from a CSV.
      user_files: The user's Python files, which steps import by their names.
      serving_version: Version that served when the run began; None without one.
      schema_keeping: Fields of `SchemaKeeping`, from which the root gets its schema; None for none.
    """

    steps: tuple[PlannedStep, ...]
    beam_options: tuple[str, ...] = ()
    definition: dict[str, Any] | None = None
    user_files: tuple[str, ...] = ()
    serving_version: str | None = None
    schema_keeping: dict[str, Any] | None = None

    def step(self, component: str) -> PlannedStep:
        """Returns the step of a component.

        Raises:
          LookupError: There is none.
        """
        for step in self.steps:
            if step.plan.component == component:
                return step
        raise LookupError(component)
