"""Making training steps: one in a session call, or as many as the hooks let pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core import tf1
from estimator_core.graphs.program import Program
from estimator_core.hooks.intervals import interval_of
from estimator_core.logs import logger
from estimator_core.spec.types import Hook


class StepRunner(tf1.train.SessionRunHook):
    """Makes the next training steps, so many that every hook is called at the steps that it is due at.

    All but the last of them are made by the Execution's `advance`, without any hook. The last one is a
    plain step: hooks find losses, summaries and the global step as if there were no other way. The first
    call of a session makes one step, to see that the model counts its steps one by one.

    Args:
        program: That of mode TRAIN.
        hooks: All hooks of the session that `StepRunner` itself is a hook of.
    """

    def __init__(self, program: Program, hooks: Sequence[Hook]):
        self._fetches = program.fetches
        self._advance = program.step.advance
        self._most = program.execution.steps_per_session_run if self._advance else 1
        self._global_step = tf1.train.get_global_step(program.graph)
        self._intervals = []
        self._step = 0
        self._counts_by_one = False
        if self._most == 1:
            return
        for hook in hooks:
            interval = interval_of(hook)
            if interval is None:
                logger.info("One step in a session call: %r is to be called at every step.", hook)
                self._most = 1
                return
            self._intervals.append(interval)

    def __call__(self, session: Any) -> Any:
        """Makes steps in a `MonitoredSession`; returns the values of the fetches at the last of them."""
        if self._most == 1:
            return session.run(self._fetches)
        return session.run_step_fn(self._run)

    def _run(self, step_context: Any) -> Any:
        skipped = self._steps_until_due() - 1
        if skipped and self._advance:
            self._advance(step_context.session, skipped)
            self._step += skipped
            for interval in self._intervals:
                interval.skip_steps(skipped)
        return step_context.run_with_hooks(self._fetches)

    def _steps_until_due(self) -> int:
        if not self._counts_by_one:
            return 1
        due = [interval.steps_until_due(self._step) for interval in self._intervals]
        return min([self._most, *(steps for steps in due if steps is not None)])

    # As a hook

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Notes where training begins, or goes on after a recovery."""
        del coord
        self._step = int(session.run(self._global_step))
        self._counts_by_one = False

    def before_run(self, run_context: Any) -> Any:
        """Asks for the global step, unless each session call makes one step anyway."""
        del run_context
        return None if self._most == 1 else tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts the step, and checks that the model counts in the same way."""
        if self._most == 1:
            return
        if self._counts_by_one:
            found = run_values.results
            is_right = found in (self._step, self._step + 1)  # read before the update or after it
        else:  # the first step of a session
            found = int(run_context.session.run(self._global_step))
            is_right = found == self._step + 1
        if is_right:
            self._counts_by_one = True
            self._step += 1
            return
        logger.warning(
            "One step in a session call from here on: the global step does not grow by 1 with each step. "
            "It was %s before the step, and %s was found.",
            self._step,
            found,
        )
        self._most = 1
