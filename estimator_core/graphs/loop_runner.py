"""Making training steps in loops of a length that no hook changes, as a TPU does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import LoopSize
from estimator_core.graphs.pace import Pace
from estimator_core.graphs.program import Program
from estimator_core.hooks.host_call import HostCallHook
from estimator_core.hooks.intervals import interval_of, pays_to_prepare
from estimator_core.hooks.nan_loss import raise_nan_loss
from estimator_core.spec.types import Hook


class LoopRunner(tf1.train.SessionRunHook):
    """Makes loops of training steps; hooks are called around a loop, and not around each of its steps.

    What hooks fetch is of the last step of a loop, and what they feed is fed to each. A host call runs in
    each step that it is due at. A loop ends early where a `StopAtStepHook` stops training, and at a step
    whose loss is NaN.

    Args:
        program: That of mode TRAIN.
        hooks: The hooks of the session.
        clock: Returns seconds.

    Attributes:
        hooks: All hooks of the session in the order in which they are called, with those of its own.
        loss_in_call: The loss of the last step when the input ended in a loop; None when that made no step.
    """

    def __init__(
        self, program: Program, hooks: Sequence[Hook], clock: Callable[[], float] = time.monotonic
    ):
        self._fetches = program.fetches
        self._program_step = program.step
        self._loss_name = program.spec.loss.name
        self._global_step = tf1.train.get_global_step(program.graph)
        self._pace = Pace(program.execution.loop_size or LoopSize(1))
        self._clock = clock
        self._host_calls = [hook for hook in hooks if isinstance(hook, HostCallHook)]
        stops = [hook for hook in hooks if isinstance(hook, tf1.train.StopAtStepHook)]
        self._stops = [interval for interval in map(interval_of, stops) if interval is not None]
        self._step = self._steps = 0
        self._start = 0.0
        self.loss_in_call: Any = None
        self._feeds: dict[Any, Any] = {}
        others = [_Feeding(hook, self._feeds) for hook in hooks if hook not in self._host_calls]
        # The first one finds the end of a loop before the others take their time, and the last one makes
        # steps once the others have seen its beginning.
        self.hooks = [self, *others, _AllStepsButOne(self), *self._host_calls]

    def __call__(self, session: Any) -> Any:
        """Makes a loop in a `MonitoredSession`; returns the values of the fetches at the last step."""
        self.loss_in_call = None
        self._feeds.clear()
        return session.run(self._fetches)

    @property
    def failed_at(self) -> str:
        """Where an error came, in words."""
        return f"in the step after global step {self._step}"

    def make_all_but_one(self, session: Any) -> None:
        """Makes all steps of a loop but the last."""
        self._step = int(session.run(self._global_step))
        self._start = self._clock()
        until_stop = [interval.steps_until_due(self._step) for interval in self._stops]
        known = [steps for steps in until_stop if steps is not None]
        self._steps = min([self._pace.next_steps(), *known])
        advance = self._program_step.advance
        if advance and not self._host_calls and not self._feeds:
            self._advance(advance, session)
            return
        for _ in range(self._steps - 1):
            of_host_calls = [hook.next_fetches() for hook in self._host_calls]
            (_, self.loss_in_call), _ = session.run([self._fetches, of_host_calls], self._feeds)
            self._step += 1
            if np.isnan(self.loss_in_call).any():
                raise_nan_loss(self._loss_name, session.run(self._global_step))

    def _advance(self, advance: Callable[[Any, int], bool | None], session: Any) -> None:
        """Makes all steps but the last by what the Execution has for that."""
        steps = self._steps - 1
        if not steps:
            return
        before = self._step
        try:
            ends_with_nan = advance(session, steps)
        except tf.errors.OpError as error:
            with contextlib.suppress(tf.errors.OpError):  # the session may be lost
                self._step = int(session.run(self._global_step))
            if isinstance(error, tf.errors.OutOfRangeError):
                if self._step > before:
                    self._note_loss(session)
                if self._program_step.end:
                    self._program_step.end(session)
            raise
        self._note_loss(session)  # the input may end with the step that comes now
        self._step += steps
        if ends_with_nan:
            raise_nan_loss(self._loss_name, session.run(self._global_step))

    def _note_loss(self, session: Any) -> None:
        if self._program_step.last_loss:
            self.loss_in_call = self._program_step.last_loss(session)

    def begin(self) -> None:
        """Lets the graph have a loop over steps, unless so few are to come that it would not pay."""
        prepare = self._program_step.prepare
        if prepare and not self._host_calls and pays_to_prepare(self.hooks):
            prepare()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Measures the loop that has ended."""
        del run_context, run_values
        self._pace.add(self._steps, self._clock() - self._start)


class _Feeding(tf1.train.SessionRunHook):
    """Calls a hook, and notes what it feeds.

    Args:
        hook: The hook.
        feeds: Tensor to the value that is fed; it gets those of the hook.
    """

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
    """Makes the steps before the one that the session is called for.

    Args:
        loops: Knows how many.
    """

    def __init__(self, loops: LoopRunner):
        self._loops = loops

    def before_run(self, run_context: Any) -> None:
        self._loops.make_all_but_one(run_context.session)
