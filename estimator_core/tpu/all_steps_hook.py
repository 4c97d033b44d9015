"""AllStepsHook: checks that an evaluation does not end early."""

from __future__ import annotations

from typing import Any

from estimator_core import tf1


class AllStepsHook(tf1.train.SessionRunHook):
    """Raises if the input ends before the steps of an evaluation are done.

    Source: on a TPU, the input_fn of an evaluation must not come to an end. Hooks there are called around
    all steps at once, so none can end an evaluation.
    """

    def __init__(self, steps: int):
        self._steps = steps
        self._done = 0
        self._is_in_step = False

    def begin(self) -> None:
        """Resets the count."""
        self._done = 0
        self._is_in_step = False

    def before_run(self, run_context: Any) -> None:
        """Records that a step begins, which may find no batch."""
        del run_context
        self._is_in_step = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts a step."""
        del run_context, run_values
        self._done += 1
        self._is_in_step = False

    def end(self, session: Any) -> None:
        """Checks that each step found a batch; a hook may end an evaluation before all steps."""
        del session
        if self._is_in_step and self._done < self._steps:
            raise ValueError(
                "With use_tpu=True, the input of an evaluation must not end before its steps are done: let "
                f"the dataset repeat(), or reduce steps. Received: steps={self._steps}, but only "
                f"{self._done} batches"
            )
