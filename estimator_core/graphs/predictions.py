"""The predict loop: batches of predictions, and single examples of them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Execution
from estimator_core.execution.inputs import Inputs
from estimator_core.graphs.build import Model, build_inputs, build_over
from estimator_core.graphs.kept_model import PredictCall
from estimator_core.graphs.program import Program
from estimator_core.graphs.restoring import RestoringSessionCreator
from estimator_core.hooks.intervals import is_called_around_steps
from estimator_core.logs import logger
from estimator_core.spec.arguments import selected_predictions
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook, InputFn


def batches_of_model(
    owner: Any,
    model: Model,
    execution: Execution,
    input_fn: InputFn,
    predict_keys: Any,
    newest: Callable[[], str | None],
) -> Iterator[Any]:
    """Yields predictions to the end of the input, batch by batch, by a kept or a new graph."""
    built = build_inputs(model, execution, ModeKeys.PREDICT, input_fn)
    call = PredictCall(owner, model, execution, built, newest())
    kept = call.find()
    if kept is not None:
        _warn_of_endless(built.inputs)
        names = list(selected_predictions(kept.predictions, predict_keys))
        yield from call.counted(call.batches(kept, names))
        return
    starts_from_checkpoint = newest() is not None
    program = build_over(built, model, execution, ModeKeys.PREDICT, starts_from_checkpoint)
    yield from call.counted(batches_of_program(program, predict_keys, newest))


def batches_of_program(
    program: Program, predict_keys: Any, newest: Callable[[], str | None], hooks: Sequence[Hook] = ()
) -> Iterator[Any]:
    """Yields predictions of a built program to the end of the input, batch by batch.

    The graph is the default graph only while it runs, not while the caller handles the predictions.
    """
    fetches = selected_predictions(program.spec.predictions, predict_keys)
    _warn_of_endless(program.inputs)
    has_hooks = bool(hooks or program.spec.prediction_hooks)
    yield from _run(program, RestoringSessionCreator(program, newest, has_hooks), fetches, hooks)


def split_examples(batches: Iterator[Any]) -> Iterator[Any]:
    """Yields predictions example by example."""
    try:
        for batch in batches:
            yield from _single_examples(batch)
    finally:
        batches.close()  # type: ignore[attr-defined]


def _single_examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, dict):
        yield from batch
        return
    sizes = {name: np.shape(value)[0] if np.ndim(value) else None for name, value in batch.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        raise ValueError(
            "Batch length of predictions should be same to yield single examples; use "
            f"yield_single_examples=False. Received: batch sizes={sizes}"
        )
    # Equal to `{name: value[row] for ...}` for each row, but three times as fast.
    rows = zip(*batch.values(), strict=True)
    yield from map(dict, map(zip, itertools.repeat(tuple(batch)), rows))


def _run(
    program: Program, restoring: RestoringSessionCreator, fetches: Any, hooks: Sequence[Hook]
) -> Iterator[Any]:
    """Yields the values of the fetches to the end of the input, batch by batch."""
    every = [*program.inputs.hooks, *hooks, *program.spec.prediction_hooks]
    with program.graph.as_default():
        # A `MonitoredSession` run reports the failure of a thread that fills a queue.
        has_queues = bool(tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS))
        is_plain = not has_queues and not any(is_called_around_steps(hook) for hook in every)
        run = _RunWithoutHooks(fetches) if is_plain else lambda session: session.run(fetches)
        session = tf1.train.MonitoredSession(restoring, hooks=every)

    def close(*error: Any) -> Any:
        with program.graph.as_default():
            return session.__exit__(*error)

    # The graph must not stay the caller's default graph, so it is entered again for each batch.
    with contextlib.ExitStack() as stack:
        stack.push(close)
        while True:
            with program.graph.as_default():
                if session.should_stop():
                    return
                try:
                    batch = run(session)
                except (tf.errors.OutOfRangeError, StopIteration):
                    return
            yield batch


class _RunWithoutHooks:
    """Runs the fetches in a `MonitoredSession` that has no hooks to call around a run."""

    def __init__(self, fetches: Any):
        self._fetches = fetches
        self._names = tuple(fetches) if type(fetches) is dict else None
        self._session: Any = None
        self._call: Any = None

    def __call__(self, session: Any) -> Any:
        """Returns the values of the fetches."""
        if self._call is None:
            session.run_step_fn(self._prepare)
        # Handles errors like `session.run`: they name the operation and the line that created it.
        values = self._session._do_call(self._call)  # noqa: SLF001
        return values if self._names is None else dict(zip(self._names, values, strict=True))

    def _prepare(self, step_context: Any) -> None:
        """Takes the session out of the `MonitoredSession`, which replaces it only if there are servers."""
        self._session = step_context.session
        # Fetching a list is faster than fetching a dict.
        fetches = self._fetches if self._names is None else [*self._fetches.values()]
        self._call = self._session.make_callable(fetches)


def _warn_of_endless(inputs: Inputs) -> None:
    if inputs.is_endless:
        logger.warning(
            "Input graph does not use tf.data.Dataset or contain a QueueRunner. "
            "That means predict yields forever. This is probably a mistake."
        )
