"""Evaluating many batches in one session call, by a loop in the graph over a copy of the metric updates."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.loops.in_graph_loop import LoopThreads, loop_over, outside_of_steps, runnable
from estimator_core.execution.loops.step_graph import StepGraph

_ONE_BY_ONE = "Batches are evaluated one by one, as %s."


class RepeatedUpdate:
    """Adds batches to the metrics one after the other, without hooks.

    Once added, a loop in the graph does so: its body is a copy of the operations of an update, which uses the
    variables, iterators and tables of the graph. If a copy might compute something else, the graph's own
    operations are run repeatedly. The results are the same.
    """

    def __init__(self, update_op: tf.Operation):
        self._update_op = update_op
        self._loop: _Loop | None = None
        self._is_prepared = False
        self._session: Any = None
        self._call: Any = None
        self.batches_made = 0

    def add_loop(self) -> None:
        """Adds the loop to the default graph if a copy of the update does the same.

        Repeated calls do nothing. There may already be a session; its next call runs the loop.
        """
        if self._is_prepared:
            return
        self._is_prepared = True
        self._session = None
        graph = self._update_op.graph
        is_final = graph.finalized
        if is_final:
            graph._unsafe_unfinalize()  # noqa: SLF001  # as a `MonitoredSession` does at its end
        self._loop = loop_over(
            [self._update_op], lambda step_graph: _Loop(step_graph, self._update_op), _ONE_BY_ONE
        )
        if is_final:
            graph.finalize()

    def __call__(self, session: Any, batches: int) -> None:
        self.batches_made = 0
        if session is not self._session:
            self._session = session
            self._loop = runnable(self._loop, session, _ONE_BY_ONE)
            if self._loop is None:
                self._call = session.make_callable(self._update_op)
        if self._loop is None:
            for _ in range(batches):
                # Handles errors like `session.run`: they name the operation and the line that created it.
                session._do_call(self._call)  # noqa: SLF001
                self.batches_made += 1
            return
        try:
            self.batches_made = self._loop.run(session, batches)
        except tf.errors.OpError as error:
            with contextlib.suppress(tf.errors.OpError):  # the session may be lost
                self.batches_made = self._loop.made(session)
            if isinstance(error, tf.errors.OutOfRangeError):
                session.run(self._update_op)  # runs the operations that need no batch once more
            raise


class _Loop:
    """A loop over a copy of an update.

    An iteration begins after the previous one has finished completely: its counter waits for the update,
    and only one iteration runs at a time.
    """

    def __init__(self, step_graph: StepGraph, update_op: tf.Operation):
        graph = update_op.graph
        self._threads = LoopThreads(chooses=False)
        self._has_one_iterator = step_graph.has_one_iterator
        with outside_of_steps(graph, "batches_without_hooks"):
            self._batches = tf1.placeholder(tf.int32, [], "batches")
            count = tf.raw_ops.VarHandleOp(
                dtype=tf.int32, shape=[], shared_name=graph.unique_name("batches_made")
            )
            self._before = tf1.placeholder(tf.int32, [], "batches_before")
            start = tf.raw_ops.AssignVariableOp(resource=count, value=self._before)

            def continues(made: Any, batches: Any) -> Any:
                return made < batches

            def one_batch(made: Any, batches: Any) -> Any:
                if step_graph.has_one_iterator:
                    (update,), _ = step_graph.timed_copy([update_op])
                else:
                    (update,) = step_graph.copy([update_op])
                with tf.control_dependencies([update]):
                    made += 1
                    total = self._before + made
                    keep = tf.raw_ops.AssignVariableOp(resource=count, value=total)
                with tf.control_dependencies([keep]):
                    return tf.identity(made), tf.identity(batches)

            with tf.control_dependencies([start]):
                first = tf.constant(0)
            self._last, _ = tf.while_loop(continues, one_batch, [first, self._batches], parallel_iterations=1)
            self._made = tf.raw_ops.ReadVariableOp(resource=count, dtype=tf.int32)

    def compile(self, session: Any) -> None:
        """Runs the loop without adding a batch; then the threads are chosen again."""
        self._threads = LoopThreads(chooses=self._has_one_iterator)
        session.run(self._last, {self._batches: 0, self._before: 0})

    def run(self, session: Any, times: int) -> int:
        """Adds batches to the metrics; returns their number."""

        def add(batches: int, options: Any) -> tuple[int, bool]:
            feeds = {self._batches: batches, self._before: self._threads.done}
            return int(session.run(self._last, feeds, options=options)), True

        return self._threads(add, times)

    def made(self, session: Any) -> int:
        """Returns the number of batches that the last run added, even if it ended with an error."""
        return int(session.run(self._made))
