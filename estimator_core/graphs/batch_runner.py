"""Evaluating batches: one in a session call, or as many as fit in a certain time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import LoopSize
from estimator_core.graphs.loop_runner import Pace
from estimator_core.graphs.program import Program
from estimator_core.hooks.intervals import is_called_around_steps
from estimator_core.logs import logger
from estimator_core.spec.types import Hook

_SECS_WITHOUT_LOOP = 0.5  # building a loop takes some tenths of a second


class BatchRunner(tf1.train.SessionRunHook):
    """Evaluates batches, counts them, logs progress about ten times, and stops after `steps` batches.

    If no hook has to be called around each batch, one session call evaluates many batches by the
    Execution's `advance`.

    `steps`: batches to evaluate; None goes to the end of the input.
    """

    def __init__(
        self,
        program: Program,
        hooks: Sequence[Hook],
        steps: int | None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.hooks = [*hooks, self]
        self.done = 0
        self._steps = steps
        self._log_every = 1 if steps is None or steps < 20 else steps // 10
        _, self._update_op = program.fetches
        self._step = program.step
        self._advance = program.step.advance
        self._most = program.execution.steps_per_session_run
        secs = program.execution.session_call_secs
        self._pace = None if secs is None else Pace(LoopSize(secs=secs))
        self._clock = clock
        self._secs = 0.0
        self._is_prepared = False
        self._coord: Any = None
        for hook in hooks:
            if self._advance and is_called_around_steps(hook):
                logger.info("One batch per session call, because %r is due at every batch.", hook)
                self._advance = None

    def __call__(self, session: Any) -> None:
        if self._advance:
            session.run_step_fn(self._run)
        else:
            session.run(self._update_op)

    def _run(self, step_context: Any) -> None:
        self._prepare_when_it_pays()
        advance, batches_made = self._step.advance, self._step.batches_made
        if advance is None or batches_made is None:
            raise ValueError("The step of mode EVAL needs an advance and batches_made. Received: None")
        batches = min(self._most, self._pace.next_steps()) if self._pace else self._most
        if self._steps is not None:
            until_logged = self._log_every - self.done % self._log_every
            batches = min(batches, until_logged, self._steps - self.done)
        start = self._clock()
        try:
            advance(step_context.session, batches)
        except tf.errors.OpError:
            # The cause may be an error in another thread, such as one that fills a queue.
            self._coord.raise_requested_exception()
            self.done += batches_made()
            raise
        if self._pace:
            secs = self._clock() - start
            self._secs += secs
            self._pace.add(batches, secs)
        self._count(batches, step_context)

    def _prepare_when_it_pays(self) -> None:
        """Adds a loop over batches to the graph once the evaluation has taken as long as building one.

        The number of batches in the input is not known in advance.
        """
        if self._step.prepare is None or self._is_prepared or self._secs < _SECS_WITHOUT_LOOP:
            return
        is_nearly_done = self._steps is not None and self._steps < 2 * self.done
        if not is_nearly_done:
            self._is_prepared = True
            self._step.prepare()

    def _count(self, batches: int, context: Any) -> None:
        self.done += batches
        if self._steps is None:
            return
        if self.done % self._log_every == 0 or self.done == self._steps:
            logger.info("Evaluation [%d/%d]", self.done, self._steps)
        if self.done == self._steps:
            context.request_stop()

    # As a hook

    def begin(self) -> None:
        """Adds a loop over batches to the graph if each call has a fixed number of batches."""
        if self._advance and self._step.prepare and self._pace is None:
            self._step.prepare()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Keeps the coordinator, which collects the errors of other threads."""
        del session
        self._coord = coord

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts a batch that was evaluated with hooks."""
        del run_values
        self._count(1, run_context)
