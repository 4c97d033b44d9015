"""Running training steps: one in a session call, or as many as there are before a hook is due."""

from __future__ import annotations

import contextlib
import numbers
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import LoopSize
from estimator_core.graphs.loop_runner import Pace
from estimator_core.graphs.program import Program
from estimator_core.hooks.intervals import StepInterval, find_interval, pays_to_prepare
from estimator_core.hooks.nan_loss import raise_nan_loss
from estimator_core.logs import logger
from estimator_core.spec.types import Hook


class StepRunner(tf1.train.SessionRunHook):
    """Runs training steps up to the next one at which a hook is due.

    All steps but the last are made by the Execution's `advance`, without calling any hook. The last one
    is an ordinary step with all hooks: they see the same loss, summaries and global step as with one step
    per session call. The first call of a session makes one step, to check that each step adds 1 to the
    global step.

    `error_place`: Place of an error among the steps made without hooks, in words; None if the error came
    elsewhere.
    `loss_in_call`: Loss of the last step if the input ended among the steps made without hooks; None if
    there was no such step or its loss is not known.
    """

    def __init__(self, program: Program, hooks: Sequence[Hook], clock: Callable[[], float] = time.monotonic):
        self.hooks = [self, *hooks]
        self.loss_in_call: Any = None
        self.secs_without_hooks = 0.0
        self._fetches = program.fetches
        self._program = program
        self._advance = program.step.advance
        self._most = program.execution.steps_per_session_run if self._advance else 1
        secs = program.execution.session_call_secs
        self._pace = None if secs is None else Pace(LoopSize(secs=secs))
        self._clock = clock
        self._coord: Any = None
        self._global_step = tf1.train.get_global_step(program.graph)
        self._intervals: list[tuple[Hook, StepInterval]] = []
        self._step = 0
        self._counts_by_one = False
        self.error_place: str | None = None
        if self._most == 1:
            return
        for hook in hooks:
            interval = find_interval(hook)
            if interval is None:
                logger.info("One step per session call, because %r is due at every step.", hook)
                self._most = 1
                return
            self._intervals.append((hook, interval))

    def __call__(self, session: Any) -> Any:
        """Runs steps in a `MonitoredSession`; returns the values of the fetches at the last step."""
        if self._most == 1:
            return session.run(self._fetches)
        return session.run_step_fn(self._run)

    def _run(self, step_context: Any) -> Any:
        self.error_place = self.loss_in_call = None
        without_hooks = self._steps_until_due() - 1
        if without_hooks and self._advance:
            self._make_without_hooks(self._advance, step_context.session, without_hooks)
        try:
            return step_context.run_with_hooks(self._fetches)
        except tf.errors.OutOfRangeError:
            if without_hooks:
                self._note_loss(step_context.session)
            raise

    def _make_without_hooks(
        self, advance: Callable[[Any, int], bool | None], session: Any, steps: int
    ) -> None:
        """Runs steps by `advance`. If it fails, the global step shows how many were made."""
        end = self._step + steps
        start = self._clock()
        try:
            ends_with_nan = advance(session, steps)
        except tf.errors.OutOfRangeError:
            self._raise_cause()
            made = int(session.run(self._global_step)) - self._step
            self._count(made)
            if made:
                self._note_loss(session)
            if self._program.step.end:
                self._program.step.end(session)
            raise
        except tf.errors.OpError:
            self.error_place = f"in the step after global step {self._step}"
            if steps > 1:
                self.error_place = f"between global steps {self._step} and {end}"
                with contextlib.suppress(tf.errors.OpError):  # the session may be lost
                    self.error_place += f"; the global step is {int(session.run(self._global_step))}"
            self._raise_cause()
            raise
        secs = self._clock() - start
        self.secs_without_hooks += secs
        if self._pace:
            self._pace.add(steps, secs)
        if ends_with_nan:
            raise_nan_loss(self._program.spec.loss.name, session.run(self._global_step))
        self._count(steps)

    def _note_loss(self, session: Any) -> None:
        if self._program.step.last_loss:
            self.loss_in_call = self._program.step.last_loss(session)

    def _raise_cause(self) -> None:
        """Raises the error of another thread, such as one that fills a queue, if it caused the current error.

        For steps with hooks, `MonitoredSession` does so itself.
        """
        if self._coord is not None:
            self._coord.raise_requested_exception()

    def _count(self, steps: int) -> None:
        self._step += steps
        if steps:
            for _, interval in self._intervals:
                interval.skip_steps(steps)

    def _steps_until_due(self) -> int:
        if not self._counts_by_one:
            return 1
        due = [_steps_until_due(hook, interval, self._step) for hook, interval in self._intervals]
        most = self._most
        if self._pace:  # at least 2: one step without hooks, which is measured, and one with hooks
            most = min(most, max(2, self._pace.next_steps()))
        return min([most, *(steps for steps in due if steps is not None)])

    # As a hook

    def begin(self) -> None:
        """Adds a loop over steps to the graph, unless there are too few steps to be worth it."""
        prepare = self._program.step.prepare
        if prepare and self._most > 1 and (self._pace is None or pays_to_prepare(self.hooks)):
            most = prepare()
            if most is not None and self._pace:
                self._most, self._pace = min(self._most, most), None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads the global step at which training begins, or resumes after a recovery."""
        self._coord = coord
        self._step = int(session.run(self._global_step))
        self._counts_by_one = False

    def before_run(self, run_context: Any) -> Any:
        """Fetches the global step, unless each session call makes one step anyway."""
        del run_context
        return None if self._most == 1 else tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts the step, and checks that the global step agrees."""
        if self._most == 1:
            return
        if self._counts_by_one:
            global_step = run_values.results  # read before or after the update
            is_right = global_step in (self._step, self._step + 1)
        else:  # the first step of a session
            global_step = int(run_context.session.run(self._global_step))
            is_right = global_step == self._step + 1
        if is_right:
            self._counts_by_one = True
            self._step += 1
            return
        logger.warning(
            "One step per session call from now on, because the global step does not grow by 1 with "
            "each step: it was %s before, and %s after a step.",
            self._step,
            global_step,
        )
        self._most = 1


def _steps_until_due(hook: Hook, interval: StepInterval, global_step: int) -> int | None:
    """Returns the hook's `steps_until_due`, checked."""
    steps = interval.steps_until_due(global_step)
    if steps is None:
        return None
    is_whole = isinstance(steps, numbers.Real) and steps % 1 == 0
    if not is_whole or steps < 1:
        raise ValueError(
            "steps_until_due must return a whole number of steps, 1 for the next step or more, or None "
            f"for never. Received: {steps!r} at global step {global_step} from {hook!r}"
        )
    return int(steps)
