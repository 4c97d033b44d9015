"""Many training steps in one session call, by a loop in the graph over a copy of the step."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from estimator_core import tf1
from estimator_core.execution.base import Execution, Step
from estimator_core.execution.loops.compiled_step import CompiledSteps, any_nan, is_nan
from estimator_core.execution.loops.jit_choice import why_not_compiled
from estimator_core.execution.loops.jit_messages import NOT_COMPILED, cant_be_compiled
from estimator_core.execution.loops.loop_threads import LoopThreads
from estimator_core.execution.loops.step_graph import StepGraph
from estimator_core.logs import logger
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys

_STEPS_IF_COMPILED = 100
_ONE_BY_ONE = "Training steps are run one by one, as %s."


@dataclasses.dataclass(frozen=True)
class ManySteps:
    """How many training steps a session call makes.

    Attributes:
        most_steps: At most so many.
        call_secs: And no more than take about so long; None sets no time.
    """

    most_steps: int
    call_secs: float | None = None


def with_calls_in_order(session_config: Any) -> Any:
    """Returns a configuration of sessions by which a function is called when all its inputs are there.

    TensorFlow would put the operations of a called function in the place of the call. Then an update of a
    variable in one function may come before another function has read it, if nothing but the call says
    which is first. Whoever has set `function_optimization` keeps the setting.

    Args:
        session_config: `ConfigProto`; None is TensorFlow's default.
    """
    config = tf1.ConfigProto()
    if session_config is not None:
        config.CopyFrom(session_config)
    rewriting = config.graph_options.rewrite_options
    if rewriting.function_optimization == RewriterConfig.DEFAULT:
        rewriting.function_optimization = RewriterConfig.OFF
    return config


class RepeatsSteps(Execution):
    """An Execution whose training steps can be made many in a session call.

    Args:
        many_steps: How many; None is one.
        jit_compile: Whether XLA compiles them; "auto" chooses.
    """

    def __init__(self, many_steps: ManySteps | None = None, jit_compile: bool | str = False):
        self._jit_compile = jit_compile
        self._repeats = False
        if many_steps is not None and many_steps.most_steps > 1:
            self.steps_per_session_run = many_steps.most_steps
            self.session_call_secs = many_steps.call_secs
            self._repeats = True

    def step_of(self, spec: EstimatorSpec, mode: str) -> Step:
        """Returns the step of a spec.

        Args:
            spec: That of all replicas together.
            mode: One of `ModeKeys`.
        """
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

    A loop in the graph makes them, once it is added: its body is a copy of the operations of a step,
    which uses the variables, iterators and tables of the graph. Where a copy might compute something
    else, the operations of the graph are run themselves, again and again. The results are the same.

    Args:
        spec: The step of all replicas together, in mode TRAIN.
        jit_compile: Whether XLA compiles a part of the copy; "auto" chooses.
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
        """Adds the loop to the graph, which is the default one, if a copy of the step does the same.

        Returns:
            How many steps a call makes at most; None without XLA. It does not depend on the time, as it
            decides which steps are compiled, and rounded in another way.

        Raises:
            ValueError: XLA must compile a part of the step, and can't.
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
        """Makes steps, and ends with one whose loss is NaN; returns whether the last one's is.

        Args:
            session: The `tf.compat.v1.Session`.
            steps: How many to make.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
        """
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
                self._is_compiled, self._last_loss = self._compiled.first_step(
                    session, chooses=chooses
                )
                steps -= 1
        if not steps or is_nan(self._last_loss):
            return is_nan(self._last_loss)
        if self._compiled and self._is_compiled and self._compiled.is_of_use:
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
        return False

    @property
    def waited_secs(self) -> float | None:
        """For how many seconds the steps of a loop waited for their batches; None where that is not known."""
        return self._loop.waited_secs if self._loop and not self._is_compiled else None

    def end(self, session: Any) -> None:
        """Runs the operations of the graph at the end of the input, unless the last call has done so.

        What needs no batch is done once more by them, and not by a copy.

        Args:
            session: The `tf.compat.v1.Session`.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
        """
        if self._runs_copy:
            session.run([self._train_op, self._loss])

    def last_loss(self, session: Any) -> Any:
        """Returns the loss of the last step of a call that made one, and that then failed or ended."""
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
    """Returns a loop over what is run for the targets; None if a copy might compute something else.

    Args:
        targets: Operations of the default graph, to which the loop is added.
        make: Makes the loop of what is to be copied.
        one_by_one: What is logged when there is none, with "%s" for the reason.
    """
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
    """Returns the loop, compiled by running it zero times; None if the session can't run it.

    Args:
        loop: A loop in the graph of the session, if there is one.
        session: A `tf.compat.v1.Session`.
        one_by_one: What is logged when it can't, with "%s" for the reason.
    """
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
    """Opens a name scope in which operations depend on none of the graph's, and are on any device."""
    with (
        tf.control_dependencies(None),
        graph.name_scope(None),
        tf1.device(None),
        graph.name_scope(name),
    ):
        yield


class _Loop:
    """A loop over a copy of a step.

    Each iteration begins when the one before is done with all that it runs: its counter waits for the
    step, and only one iteration runs at a time.

    Args:
        step_graph: What a step runs.
        train_op: The step.
        loss: Its loss.

    Attributes:
        waited_secs: For how many seconds the steps have waited for their batches; None without one iterator.
    """

    def __init__(self, step_graph: StepGraph, train_op: tf.Operation, loss: tf.Tensor):
        graph = train_op.graph
        self.waited_secs = 0.0 if step_graph.has_one_iterator else None
        self._threads = LoopThreads(chooses=False)
        with outside_of_steps(graph, "steps_without_hooks"):
            self._steps = tf1.placeholder(tf.int32, [], "steps")
            kept = tf.raw_ops.VarHandleOp(
                dtype=loss.dtype, shape=loss.shape, shared_name=graph.unique_name("last_loss")
            )

            def go_on(done: Any, is_nan: Any, waited: Any, steps: Any) -> Any:
                del waited
                return (done < steps) & ~is_nan

            def one_step(done: Any, is_nan: Any, waited: Any, steps: Any) -> Any:
                if step_graph.has_one_iterator:
                    (step, value), secs = step_graph.timed_copy([train_op, loss])
                    waited += secs
                else:
                    step, value = step_graph.copy([train_op, loss])
                keep = tf.raw_ops.AssignVariableOp(resource=kept, value=value)
                with tf.control_dependencies([step, keep]):
                    return done + 1, any_nan(value), waited, tf.identity(steps)

            self._done, self._is_nan, self._waited, _ = tf.while_loop(
                go_on,
                one_step,
                [tf.constant(0), tf.constant(False), tf.constant(0.0, tf.float64), self._steps],
                parallel_iterations=1,
            )
            self._has_loss = tf.raw_ops.VarIsInitializedOp(resource=kept)
            self._last_loss = tf.raw_ops.ReadVariableOp(resource=kept, dtype=loss.dtype)

    def compile(self, session: Any) -> None:
        """Makes no step; then the threads are chosen anew."""
        self._threads = LoopThreads(chooses=self.waited_secs is not None)
        session.run([self._done, self._is_nan, self._waited], {self._steps: 0})

    def run(self, session: Any, steps: int) -> bool:
        """Makes steps, and ends with one whose loss is NaN; returns whether the last one's is."""
        is_nan = False

        def make(steps: int, options: Any) -> tuple[int, bool]:
            nonlocal is_nan
            fetches = [self._done, self._is_nan, self._waited]
            done, is_nan, waited = session.run(fetches, {self._steps: steps}, options=options)
            if self.waited_secs is not None:
                self.waited_secs += float(waited)
            return int(done), not is_nan

        self._threads(make, steps)
        return bool(is_nan)

    def last_loss(self, session: Any) -> Any:
        """Returns the loss of the last step that was made in the session; None without one."""
        return session.run(self._last_loss) if session.run(self._has_loss) else None
