"""Many training steps in one session call, by a loop in the graph over a copy of the step."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from estimator_core import tf1
from estimator_core.execution.base import Execution, Step
from estimator_core.execution.loops.compiled_step import (
    NOT_COMPILED,
    CompiledSteps,
    cant_be_compiled,
    is_nan,
    why_not_compiled,
)
from estimator_core.execution.loops.step_graph import StepGraph
from estimator_core.hooks.nan_loss import infinite_loss_is_reported, report_infinite_loss
from estimator_core.logs import logger
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys

_TRIAL_SECS = 0.01  # a trial has enough iterations to take this long
_TRIALS = 6  # three of each
_MIN_SPEEDUP = 1.05  # several threads must be faster by this factor, as they use more processors

# Function of (number of iterations, options of `session.run`) that runs a loop; it returns the number of
# iterations made, and True if the loop may continue.
Run = Callable[[int, Any], tuple[int, bool]]
_CALLERS_THREAD = tf1.RunOptions(inter_op_thread_pool=-1)
_STEPS_IF_COMPILED = 100
_ONE_BY_ONE = "Training steps are run one by one, as %s."


@dataclasses.dataclass(frozen=True)
class ManySteps:
    """Limits on the training steps of one session call."""

    most_steps: int
    call_secs: float | None = None  # Approximate largest number of seconds; None sets no time


def with_calls_in_order(session_config: Any) -> Any:
    """Returns a session configuration that does not inline functions: a call waits for all its inputs.

    If TensorFlow inlined the functions, one of them might update a variable before another has read
    it, because only the calls are ordered. A `function_optimization` set by the user is kept.
    """
    config = tf1.ConfigProto()
    if session_config is not None:
        config.CopyFrom(session_config)
    rewriting = config.graph_options.rewrite_options
    if rewriting.function_optimization == RewriterConfig.DEFAULT:
        rewriting.function_optimization = RewriterConfig.OFF
    return config


class RepeatsSteps(Execution):
    """An Execution that can make many training steps in one session call.

    `many_steps`: limits on the steps of a session call; None makes one step.
    `jit_compile`: True to compile the steps by XLA; "auto" chooses.
    """

    def __init__(self, many_steps: ManySteps | None = None, jit_compile: bool | str = False):
        self._jit_compile = jit_compile
        self._repeats = False
        if many_steps is not None and many_steps.most_steps > 1:
            self.steps_per_session_run = many_steps.most_steps
            self.session_call_secs = many_steps.call_secs
            self._repeats = True

    def make_step(self, spec: EstimatorSpec, mode: str) -> Step:
        if mode != ModeKeys.TRAIN or not self._repeats:
            return Step(spec)
        repeated = RepeatedStep(spec, self._jit_compile)
        return Step(
            spec,
            repeated,
            repeated.add_loop,
            repeated.last_loss,
            repeated.end,
            waited_secs=lambda: repeated.waited_secs,
        )


class RepeatedStep:
    """Makes training steps one after the other, without hooks.

    Once added, a loop in the graph makes them: its body is a copy of the operations of a step, which uses the
    variables, iterators and tables of the graph. If a copy might compute something else, the graph's own
    operations are run repeatedly. The results are the same.

    `jit_compile`: True to compile a part of the copy by XLA; "auto" chooses.
    """

    def __init__(self, spec: EstimatorSpec, jit_compile: bool | str = False):
        self._jit_compile = jit_compile
        self._compiled: CompiledSteps | None = None
        self._why_not_compiled: str | None = None
        self._is_compiled = False
        self._in_loop = self._runs_copy = False
        train_op = spec.train_op
        self._train_op = train_op if isinstance(train_op, tf.Operation) else train_op.op
        self._loss = spec.loss
        self._loop: _Loop | None = None
        self._session: Any = None
        self._call: Any = None
        self._last_loss: Any = None

    def add_loop(self) -> int | None:
        """Adds the loop to the default graph if a copy of the step does the same.

        Returns largest number of steps of a call; None without XLA. It does not depend on time, because it
        decides which steps are compiled, and compiled steps round differently.
        """
        targets = [self._train_op, self._loss.op]
        self._loop = loop_over(targets, self._make_loop, _ONE_BY_ONE)
        if self._compiled:
            return _STEPS_IF_COMPILED
        if self._jit_compile is True:
            reason = self._why_not_compiled or StepGraph(targets).why_not_copied()
            raise cant_be_compiled(reason or "TensorFlow can't put a copy of the step into a loop")
        return None

    def _make_loop(self, step_graph: StepGraph) -> _Loop:
        if self._jit_compile:
            self._compiled = self._compiled_steps(step_graph)
        return _Loop(step_graph, self._train_op, self._loss)

    def _compiled_steps(self, step_graph: StepGraph) -> CompiledSteps | None:
        steps = CompiledSteps(step_graph, self._train_op, self._loss)
        self._why_not_compiled = why_not_compiled(steps, chooses=self._jit_compile is not True)
        if self._why_not_compiled is not None:
            if self._jit_compile is not True:
                logger.info(NOT_COMPILED, self._why_not_compiled)
            return None
        try:
            with outside_of_steps(self._train_op.graph, "compiled_steps"):
                steps.add_to_graph()
        except (TypeError, ValueError, tf.errors.OpError) as error:
            self._why_not_compiled = f"TensorFlow can't make a loop for it: {error}"
            logger.info(NOT_COMPILED, self._why_not_compiled)
            return None
        return steps

    def __call__(self, session: Any, steps: int) -> bool:
        """Makes steps, stopping after one whose loss is NaN; returns whether the last loss is NaN."""
        self._last_loss = None
        self._runs_copy = False
        if session is not self._session:
            self._session = session
            self._loop = runnable(self._loop, session, _ONE_BY_ONE)
            if self._loop is None:
                self._call = session.make_callable([self._train_op, self._loss])
            self._is_compiled = False
            if self._compiled:
                chooses = self._jit_compile is not True
                self._is_compiled, self._last_loss = self._compiled.first_step(session, chooses=chooses)
                steps -= 1
                if np.isinf(self._last_loss).any():
                    report_infinite_loss(session, self._loss)
        if not steps or is_nan(self._last_loss):
            return is_nan(self._last_loss)
        if self._compiled and self._is_compiled and self._compiled.is_worthwhile:
            self._in_loop, self._runs_copy = False, True
            try:
                self._last_loss = self._compiled.run(session, steps)
            except tf.errors.OpError:
                if self._compiled.last_loss is not None:
                    self._last_loss = self._compiled.last_loss
                raise
            return is_nan(self._last_loss)
        self._in_loop = self._runs_copy = self._loop is not None
        if self._loop:
            return self._loop.run(session, steps)
        for _ in range(steps):
            _, self._last_loss = self._call()
            if is_nan(self._last_loss):
                return True
            if np.isinf(self._last_loss).any():
                report_infinite_loss(session, self._loss)
        return False

    @property
    def waited_secs(self) -> float | None:
        """Seconds that the steps of a loop waited for their batches; None if not known."""
        return self._loop.waited_secs if self._loop and not self._is_compiled else None

    def end(self, session: Any) -> None:
        """Runs the graph's operations at the end of the input, unless the last call has done so.

        The operations that need no batch are run once more, by the graph itself and not by a copy.
        """
        if self._runs_copy:
            session.run([self._train_op, self._loss])

    def last_loss(self, session: Any) -> Any:
        """Returns the loss of the last step of a call that then failed or found the end of the input."""
        in_loop = self._loop.last_loss(session) if self._loop and self._in_loop else None
        return self._last_loss if in_loop is None else in_loop


class Loop(Protocol):
    """A loop in the graph over a copy of some of its operations."""

    def compile(self, session: Any) -> None:
        """Runs the copy zero times."""


LoopKind = TypeVar("LoopKind", bound=Loop)


def loop_over(
    targets: Sequence[tf.Operation], make: Callable[[StepGraph], LoopKind], one_by_one: str
) -> LoopKind | None:
    """Returns a loop over a copy of the targets; None if a copy might compute something else."""
    if not tf1.control_flow_v2_enabled():
        logger.info(one_by_one, "loops of TensorFlow 1 are on (disable_v2_behavior)")
        return None
    step_graph = StepGraph(targets)
    reason = step_graph.why_not_copied()
    if reason:
        logger.info(one_by_one, reason)
        return None
    try:
        return make(step_graph)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        logger.warning(one_by_one, f"TensorFlow can't put a copy of them into a loop: {error}")
    return None


def runnable(loop: LoopKind | None, session: Any, one_by_one: str) -> LoopKind | None:
    """Returns the loop, compiled by running it zero times; None if the session can't run it."""
    if loop is None:
        return None
    try:
        loop.compile(session)
    except (
        tf.errors.InternalError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
        tf.errors.UnimplementedError,
    ) as error:
        logger.warning(one_by_one, f"the session can't run a loop of them: {error}")
        return None
    return loop


@contextlib.contextmanager
def outside_of_steps(graph: tf.Graph, name: str) -> Iterator[None]:
    """Opens a name scope without control dependencies and without a device."""
    with tf.control_dependencies(None), graph.name_scope(None), tf1.device(None), graph.name_scope(name):
        yield


class _Loop:
    """A loop over a copy of a step.

    An iteration begins after the previous one has finished completely: its counter waits for the step, and
    only one iteration runs at a time.

    `waited_secs`: Seconds that the steps have waited for their batches; None unless there is one iterator.
    """

    def __init__(self, step_graph: StepGraph, train_op: tf.Operation, loss: tf.Tensor):
        graph = train_op.graph
        self._loss = loss
        self.waited_secs = 0.0 if step_graph.has_one_iterator else None
        self._threads = LoopThreads(chooses=False)
        with outside_of_steps(graph, "steps_without_hooks"):
            self._steps = tf1.placeholder(tf.int32, [], "steps")
            limit_dtype = loss.dtype if loss.dtype.is_floating else tf.float32
            self._limit = tf1.placeholder(limit_dtype, [], "limit")
            kept = tf.raw_ops.VarHandleOp(
                dtype=loss.dtype, shape=loss.shape, shared_name=graph.unique_name("last_loss")
            )

            def continues(done: Any, is_usual: Any, waited: Any, steps: Any) -> Any:
                del waited
                return (done < steps) & is_usual

            def one_step(done: Any, is_usual: Any, waited: Any, steps: Any) -> Any:
                del is_usual
                if step_graph.has_one_iterator:
                    (step, value), secs = step_graph.timed_copy([train_op, loss])
                    waited += secs
                else:
                    step, value = step_graph.copy([train_op, loss])
                keep = tf.raw_ops.AssignVariableOp(resource=kept, value=value)
                with tf.control_dependencies([step, keep]):
                    is_usual = tf.constant(True)
                    if loss.dtype.is_floating:
                        is_usual = tf.reduce_all(tf.abs(value) <= self._limit)  # False for NaN
                    return done + 1, is_usual, waited, tf.identity(steps)

            self._done, self._is_usual, self._waited, _ = tf.while_loop(
                continues,
                one_step,
                [tf.constant(0), tf.constant(True), tf.constant(0.0, tf.float64), self._steps],
                parallel_iterations=1,
            )
            self._has_loss = tf.raw_ops.VarIsInitializedOp(resource=kept)
            self._last_loss = tf.raw_ops.ReadVariableOp(resource=kept, dtype=loss.dtype)

    def compile(self, session: Any) -> None:
        """Runs the loop without making a step; then the threads are chosen again."""
        self._threads = LoopThreads(chooses=self.waited_secs is not None)
        self._run(session, 0, None)

    def run(self, session: Any, steps: int) -> bool:
        """Makes steps, stopping after one whose loss is NaN; returns whether the last loss is NaN."""
        ends_with_nan = False

        def make(steps: int, options: Any) -> tuple[int, bool]:
            nonlocal ends_with_nan
            done = 0
            while done < steps and not ends_with_nan:
                made, is_usual = self._run(session, steps - done, options)
                done += made
                ends_with_nan = not is_usual and is_nan(self.last_loss(session))
                if not is_usual and not ends_with_nan:
                    report_infinite_loss(session, self._loss)
            return done, not ends_with_nan

        self._threads(make, steps)
        return ends_with_nan

    def _run(self, session: Any, steps: int, options: Any) -> tuple[int, bool]:
        """Makes steps up to one whose loss is NaN or, unless that was reported, infinite."""
        # Once reported, an infinite loss is usual: stopping at each would make one step a call.
        is_reported = infinite_loss_is_reported(self._loss.graph)
        limit = float("inf") if is_reported else self._limit.dtype.max
        feeds = {self._steps: steps, self._limit: limit}
        fetches = [self._done, self._is_usual, self._waited]
        done, is_usual, waited = session.run(fetches, feeds, options=options)
        if self.waited_secs is not None:
            self.waited_secs += float(waited)
        return int(done), bool(is_usual)

    def last_loss(self, session: Any) -> Any:
        """Returns the loss of the last step made in the session; None if there was none."""
        return session.run(self._last_loss) if session.run(self._has_loss) else None


class LoopThreads:
    """Chooses the threads of a loop by trying both kinds in its first runs.

    A single thread runs small operations faster than it could hand them to other threads. Large operations
    run faster on several threads. Within an operation, such as the product of large matrices, several threads
    are used in any case.

    The results are the same, even for numbers so small (below 1.2e-38) that TensorFlow's threads round them
    to 0 and Python's don't: the caller's thread only requests the batch, and the thread that delivers it runs
    the step. That thread was created by one of TensorFlow's threads in the first trial, and rounds as they
    do. Therefore a loop without an iterator is always run by the session's threads.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, *, chooses: bool = True):
        self.done = 0
        self._clock = clock
        self._times = 1  # iterations of a trial
        # Seconds per iteration: of the session's threads, the caller's, the session's, ...
        self._trials: list[float] = []
        self._options: Any = None
        self._is_chosen = not chooses

    def __call__(self, run: Run, times: int) -> int:
        """Runs iterations of a loop until they are done or it ends early; returns their number."""
        self.done = 0
        continues = True
        while continues and not self._is_chosen and self.done < times:
            continues = self._try(run, min(self._times, times - self.done), times)
        if not continues or self.done == times:
            return self.done
        made, _ = run(times - self.done, self._options)
        return self.done + made

    def _try(self, run: Run, times: int, most: int) -> bool:
        options = _CALLERS_THREAD if len(self._trials) % 2 else None
        start = self._clock()
        made, continues = run(times, options)
        secs = self._clock() - start
        self.done += made
        is_whole = times == self._times
        if is_whole and times < most and secs < _TRIAL_SECS:
            # Too short, perhaps after a slow first run: start again with twice as many iterations.
            self._times *= 2
            self._trials.clear()
        elif is_whole or times == most:
            self._trials.append(secs / times)
        if len(self._trials) == _TRIALS:
            self._is_chosen = True
            if min(self._trials[1::2]) <= min(self._trials[::2]) * _MIN_SPEEDUP:
                self._options = _CALLERS_THREAD
        return continues
