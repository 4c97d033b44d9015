"""Shows, records and checks the steps of a run."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pipelines.root.records import ComponentRecord
from pipelines.runs.checks.component_checks import ComponentCheck
from pipelines.runs.recorder import RunRecorder
from pipelines.terminal.progress import Progress

if TYPE_CHECKING:
    from pipelines.steps.step_folders import FinishedStep
    from pipelines.steps.step_plan import StepPlan

_LOGGER = logging.getLogger(__name__)


class StepRecorder:
    """Shows, records and checks the steps of a run.

    `check_of`: returns the check of a step; None for none. Reused steps are checked as well.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        progress: Progress,
        check_of: Callable[["FinishedStep"], ComponentCheck | None],
        after_step: Callable[["FinishedStep"], None] = lambda step: None,
    ):
        self._recorder = recorder
        self._progress = progress
        self._check_of = check_of
        self._after_step = after_step
        self.ran: set[str] = set()

    def step_started(self, plan: "StepPlan") -> None:
        """Shows that a step begins."""
        trains = plan.component.partition(".")[0] == "Trainer"
        self._progress.component_started(plan.component, trains=trains)
        self._recorder.component_started(plan.component)

    def step_finished(
        self, step: "FinishedStep", reused: bool, elapsed_secs: float, reason: str
    ) -> None:
        """Records that a step has its outputs, and checks them."""
        if not reused:
            self.ran.add(step.component)
        _LOGGER.info("%s %s: %s", step.component, "is cached" if reused else "ran", reason)
        self._progress.component_finished(step.component, reused, elapsed_secs, reason)
        status: Literal["cached", "finished"] = "cached" if reused else "finished"
        self._recorder.add_component(
            ComponentRecord(step.component, status, elapsed_secs, reason, step.name)
        )
        if check := self._check_of(step):
            outputs = {key: [step.artifact(key)] for key in step.outputs}
            findings = check(outputs, self._recorder.root)
            self._recorder.add_findings(findings)
            if findings.failure:
                raise findings.failure
        self._after_step(step)

    def step_failed(self, plan: "StepPlan", elapsed_secs: float) -> None:
        """Records that a step has raised an error."""
        self._progress.component_failed(plan.component, elapsed_secs)
        self._recorder.add_component(ComponentRecord(plan.component, "failed", elapsed_secs))
