"""Runs requests in batches: those that arrive while one batch runs make up the next one.

A single request never waits for others, and batches grow with the number of requests.
"""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.errors import BadInputError, counted
from pipelines.serving.model import Model
from pipelines.serving.saved_model import Signature
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request import RequestError, Tensors, check_rows


@dataclass(frozen=True)
class BatchLimits:
    max_batch_rows: int = 512  # Rows of a batch. A request with more is a separate batch.
    max_request_rows: int = 20_000  # Rows of a request; one with more is refused with status 413
    max_waiting_rows: int = 20_000  # Rows that may wait; further requests are refused with status 503
    timeout_secs: float = 30.0  # Time that a request may wait for its prediction; then its status is 504

    @property
    def max_rows(self) -> int:
        """Rows of a request that can be accepted at all."""
        return min(self.max_request_rows, self.max_waiting_rows)


@dataclass
class _Request:
    model: Model
    signature: Signature
    inputs: Tensors
    num_rows: int
    kind: tuple[Any, ...]  # requests of one kind can share a batch
    answer: "asyncio.Future[dict[str, Any]]"


class Batcher:
    """Runs requests in batches, one at a time, in a thread."""

    def __init__(self, limits: BatchLimits, metrics: ServerMetrics, executor: Executor | None = None):
        self._limits = limits
        self._metrics = metrics
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="model")
        self._waiting: list[_Request] = []
        self._waiting_rows = 0
        self._work: asyncio.Task[None] | None = None

    async def run(self, model: Model, signature: Signature, inputs: Tensors, num_rows: int) -> dict[str, Any]:
        """Returns the outputs of a signature for the inputs of one request."""
        check_rows(num_rows, self._limits.max_rows)
        waiting = self._waiting_rows
        if waiting + num_rows > self._limits.max_waiting_rows:
            raise RequestError(
                503,
                f"The server is busy: {counted(waiting, 'row')} waiting already. Try again later.",
                {"Retry-After": "1"},
            )
        answer = asyncio.get_running_loop().create_future()
        kind = _kind(model, signature, inputs, num_rows) or (id(answer),)
        self._waiting.append(_Request(model, signature, inputs, num_rows, kind, answer))
        self._set_waiting_rows(waiting + num_rows)
        if self._work is None:
            self._work = asyncio.create_task(self._run_all())
        try:
            async with asyncio.timeout(self._limits.timeout_secs):
                return await answer
        except TimeoutError as error:
            raise RequestError(
                504, f"There is no prediction after {self._limits.timeout_secs:g} s."
            ) from error

    async def _run_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := self._next_batch():
                outcomes = await loop.run_in_executor(self._executor, self._outcomes, batch)
                for request, outcome in zip(batch, outcomes, strict=True):
                    if request.answer.done():  # its time was over
                        continue
                    if isinstance(outcome, Exception):
                        request.answer.set_exception(outcome)
                    else:
                        request.answer.set_result(outcome)
        finally:
            self._work = None

    def _next_batch(self) -> list[_Request]:
        """Takes the oldest request, and those of its kind that fit into a batch with it."""
        waiting = [request for request in self._waiting if not request.answer.done()]
        batch: list[_Request] = []
        left: list[_Request] = []
        rows = 0
        for request in waiting:
            fits = not batch or (
                request.kind == batch[0].kind and rows + request.num_rows <= self._limits.max_batch_rows
            )
            if fits:
                batch.append(request)
                rows += request.num_rows
            else:
                left.append(request)
        self._waiting = left
        self._set_waiting_rows(sum(request.num_rows for request in left))
        return batch

    def _set_waiting_rows(self, rows: int) -> None:
        self._waiting_rows = rows
        self._metrics.set_waiting(rows)

    def _outcomes(self, batch: Sequence[_Request]) -> list[Any]:
        """Returns each request's outputs or error. A failing request does not affect the others."""
        first = batch[0]
        start = time.perf_counter()
        try:
            if len(batch) == 1:
                return [first.model.run(first.signature.name, first.inputs)]
            inputs = {
                name: np.concatenate([request.inputs[name] for request in batch]) for name in first.inputs
            }
            outputs = first.model.run(first.signature.name, inputs)
            ends = np.cumsum([request.num_rows for request in batch])[:-1]
            parts = {name: np.split(values, ends) for name, values in outputs.items()}
            return [{name: values[index] for name, values in parts.items()} for index in range(len(batch))]
        except BadInputError as error:
            if len(batch) > 1:  # one of them is at fault
                return [self._outcomes([request])[0] for request in batch]
            return [RequestError(400, str(error))]
        except Exception as error:  # of any kind: the server keeps running
            return [error] * len(batch)
        finally:
            rows = sum(request.num_rows for request in batch)
            self._metrics.add_batch(rows, time.perf_counter() - start)


def _kind(model: Model, signature: Signature, inputs: Tensors, num_rows: int) -> tuple[Any, ...] | None:
    """Returns the key that requests of one batch share; None for a request that shares none."""
    tensors = [*signature.inputs.values(), *signature.outputs.values()]
    if not all(tensor.shape and tensor.shape[0] is None for tensor in tensors):
        return None
    if any(values.shape[:1] != (num_rows,) for values in inputs.values()):
        return None
    shapes = tuple((name, inputs[name].dtype.str, inputs[name].shape[1:]) for name in inputs)
    return (id(model), signature.name, shapes)
