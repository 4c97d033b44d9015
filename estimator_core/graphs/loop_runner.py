"""Running training steps in loops whose length does not depend on hooks, as on a TPU."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import LoopSize
from estimator_core.graphs.program import Program
from estimator_core.hooks.host_call import HostCallHook
from estimator_core.hooks.intervals import find_interval, pays_to_prepare
from estimator_core.hooks.nan_loss import raise_nan_loss, report_infinite_loss
from estimator_core.spec.types import Hook

_MEASURED_LOOPS = 5


class LoopRunner(tf1.train.SessionRunHook):
    """Runs loops of training steps; hooks are called around a loop, not around each of its steps.

    Hooks fetch values of the last step of a loop; their feeds are fed to every step. A host call runs in
    each step at which it is due. A loop ends early where a `StopAtStepHook` stops training, and at a step
    whose loss is NaN.

    `loss_in_call`: Loss of the last step if the input ended within a loop; None if the loop made no step.
    """

    def __init__(self, program: Program, hooks: Sequence[Hook], clock: Callable[[], float] = time.monotonic):
        self._fetches = program.fetches
        self._program_step = program.step
        self._loss = program.spec.loss
        self._global_step = tf1.train.get_global_step(program.graph)
        self._pace = Pace(program.execution.loop_size or LoopSize(1))
        self._clock = clock
        self._host_calls = [hook for hook in hooks if isinstance(hook, HostCallHook)]
        stops = [hook for hook in hooks if isinstance(hook, tf1.train.StopAtStepHook)]
        self._stops = [interval for interval in map(find_interval, stops) if interval is not None]
        self._step = self._steps = 0
        self._start = 0.0
        self.loss_in_call: Any = None
        self._feeds: dict[Any, Any] = {}
        others = [_Feeding(hook, self._feeds) for hook in hooks if hook not in self._host_calls]
        # The first hook measures the end of a loop before the others take time. `_AllStepsButOne` runs the
        # steps after the other hooks have seen the beginning of the loop.
        self.hooks = [self, *others, _AllStepsButOne(self), *self._host_calls]

    def __call__(self, session: Any) -> Any:
        """Runs a loop in a `MonitoredSession`; returns the values of the fetches at the last step."""
        self.loss_in_call = None
        self._feeds.clear()
        return session.run(self._fetches)

    @property
    def error_place(self) -> str:
        """Place of an error, in words."""
        return f"in the step after global step {self._step}"

    def make_all_but_one(self, session: Any) -> None:
        """Runs all steps of a loop but the last."""
        self._step = int(session.run(self._global_step))
        self._start = self._clock()
        until_stop = [interval.steps_until_due(self._step) for interval in self._stops]
        until_known_stop = [steps for steps in until_stop if steps is not None]
        self._steps = min([self._pace.next_steps(), *until_known_stop])
        advance = self._program_step.advance
        if advance and not self._host_calls and not self._feeds:
            self._advance(advance, session)
            return
        for _ in range(self._steps - 1):
            of_host_calls = [hook.next_fetches() for hook in self._host_calls]
            (_, self.loss_in_call), _ = session.run([self._fetches, of_host_calls], self._feeds)
            self._step += 1
            if np.isnan(self.loss_in_call).any():
                raise_nan_loss(self._loss.name, session.run(self._global_step))
            if np.isinf(self.loss_in_call).any():
                report_infinite_loss(session, self._loss)

    def _advance(self, advance: Callable[[Any, int], bool | None], session: Any) -> None:
        """Runs all steps but the last by the Execution's `advance`."""
        steps = self._steps - 1
        if not steps:
            return
        start = self._step
        try:
            ends_with_nan = advance(session, steps)
        except tf.errors.OpError as error:
            with contextlib.suppress(tf.errors.OpError):  # the session may be lost
                self._step = int(session.run(self._global_step))
            if isinstance(error, tf.errors.OutOfRangeError):
                if self._step > start:
                    self._note_loss(session)
                if self._program_step.end:
                    self._program_step.end(session)
            raise
        self._note_loss(session)  # the input may end at the next step
        self._step += steps
        if ends_with_nan:
            raise_nan_loss(self._loss.name, session.run(self._global_step))

    def _note_loss(self, session: Any) -> None:
        if self._program_step.last_loss:
            self.loss_in_call = self._program_step.last_loss(session)

    def begin(self) -> None:
        """Adds a loop over steps to the graph, unless there are too few steps to be worth it."""
        prepare = self._program_step.prepare
        if prepare and not self._host_calls and pays_to_prepare(self.hooks):
            prepare()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Records the time of the loop that has ended."""
        del run_context, run_values
        self._pace.add(self._steps, self._clock() - self._start)


class _Feeding(tf1.train.SessionRunHook):
    """Calls a hook and records its feeds."""

    def __init__(self, hook: Hook, feeds: dict[Any, Any]):
        self._hook = hook
        self._feeds = feeds
        self.begin = hook.begin
        self.after_create_session = hook.after_create_session
        self.after_run = hook.after_run
        self.end = hook.end

    def before_run(self, run_context: Any) -> Any:
        arguments = self._hook.before_run(run_context)
        if arguments is not None and arguments.feed_dict:
            self._feeds.update(arguments.feed_dict)
        return arguments


class _AllStepsButOne(tf1.train.SessionRunHook):
    """Runs the steps of a loop that come before the step of the session call."""

    def __init__(self, loops: LoopRunner):
        self._loops = loops

    def before_run(self, run_context: Any) -> None:
        self._loops.make_all_but_one(run_context.session)


class Pace:
    """Number of steps in each loop: a fixed number, or as many as take about the same time.

    When a time is given, the first loop has one step; then the time of a step is measured on the last five
    loops.
    """

    def __init__(self, size: LoopSize):
        self._size = size
        self._loops: collections.deque[tuple[int, float]] = collections.deque(maxlen=_MEASURED_LOOPS)

    def next_steps(self) -> int:
        """Returns the number of steps of the next loop."""
        if self._size.secs is None:
            return self._size.steps
        steps = sum(steps for steps, _ in self._loops)
        secs = sum(secs for _, secs in self._loops)
        return max(1, round(self._size.secs * steps / secs)) if secs > 0 else 1

    def add(self, steps: int, secs: float) -> None:
        """Records the steps and seconds of a loop."""
        self._loops.append((steps, secs))
