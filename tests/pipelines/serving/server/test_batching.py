import asyncio
import dataclasses
import threading

import numpy as np
import pytest
import tensorflow as tf

from pipelines.errors import BadInputError
from pipelines.serving.saved_model import Signature, Tensor
from pipelines.serving.server.batching import Batcher, BatchLimits
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request import RequestError


def signature(shape=(None,)):
    tensor = Tensor("x", tf.float32, shape)
    return Signature("double", "predict", {"x": tensor}, {"y": tensor}, {}, False, None)


class Doubling:
    """A model that waits for `go`, refuses negative numbers, and records the batches that it has had."""

    def __init__(self):
        self.go = threading.Event()
        self.begun = threading.Event()
        self.batches = []

    def run(self, name, inputs):
        self.begun.set()
        assert self.go.wait(10)
        numbers = inputs["x"]
        self.batches.append(numbers.tolist())
        if (numbers < 0).any():
            raise BadInputError("a negative number")
        if (numbers > 1_000).any():
            raise RuntimeError("a bug")
        return {"y": numbers * 2}


LIMITS = BatchLimits()
SIGNATURE = signature()


def run(steps, limits=LIMITS):
    """Runs `steps(batcher, model, ask)`; `ask` sends numbers as one request, and returns its task."""
    model = Doubling()

    async def main():
        batcher = Batcher(limits, ServerMetrics())

        def ask(*numbers, signature=SIGNATURE):
            inputs = {"x": np.array(numbers, np.float32)}
            return asyncio.ensure_future(batcher.run(model, signature, inputs, len(numbers)))

        return await steps(model, ask)

    return asyncio.run(main()), model.batches


async def begun(model):
    """Returns when the first batch runs, and waits for `go`."""
    while not model.begun.is_set():
        await asyncio.sleep(0.001)


def test_requests_that_arrive_while_a_batch_runs_are_the_next_batch():
    async def steps(model, ask):
        first = ask(1)
        await begun(model)
        later = [ask(2, 3), ask(4)]
        await asyncio.sleep(0)
        model.go.set()
        return [(await task)["y"].tolist() for task in (first, *later)]

    answers, batches = run(steps)
    assert answers == [[2], [4, 6], [8]]
    assert batches == [[1], [2, 3, 4]]


def test_a_batch_has_no_more_rows_than_its_limit_but_for_one_request():
    async def steps(model, ask):
        tasks = [ask(1)]
        await begun(model)
        tasks += [ask(2, 3), ask(4, 5), ask(6), ask(*range(7, 12))]
        await asyncio.sleep(0)
        model.go.set()
        await asyncio.gather(*tasks)

    _, batches = run(steps, BatchLimits(max_batch_rows=3))
    assert batches == [[1], [2, 3, 6], [4, 5], [7, 8, 9, 10, 11]]


def test_requests_for_different_signatures_share_no_batch():
    other = dataclasses.replace(SIGNATURE, name="other")

    async def steps(model, ask):
        tasks = [ask(1)]
        await begun(model)
        tasks += [ask(2), ask(3, signature=other), ask(4)]
        tasks += [ask(5, signature=signature((1,))), ask(6, signature=signature((1,)))]
        await asyncio.sleep(0)
        model.go.set()
        await asyncio.gather(*tasks)

    assert run(steps)[1] == [[1], [2, 4], [3], [5], [6]]


def test_a_request_that_fails_spoils_no_other():
    async def steps(model, ask):
        tasks = [ask(1)]
        await begun(model)
        tasks += [ask(2), ask(-3), ask(4)]
        await asyncio.sleep(0)
        model.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers, _ = run(steps)
    assert [answers[index]["y"].tolist() for index in (0, 1, 3)] == [[2], [4], [8]]
    assert (answers[2].status, answers[2].message) == (400, "a negative number")


def test_the_batcher_goes_on_after_an_unexpected_error():
    async def steps(model, ask):
        model.go.set()
        with pytest.raises(RuntimeError, match="a bug"):
            await ask(2_000)
        return (await ask(2))["y"].tolist()

    assert run(steps)[0] == [4]


def test_a_full_queue_refuses_requests():
    async def steps(model, ask):
        tasks = [ask(1)]
        await begun(model)
        tasks += [ask(2, 3, 4)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as raised:
            await ask(5)
        model.go.set()
        await asyncio.gather(*tasks)
        return raised.value

    error, batches = run(steps, BatchLimits(max_waiting_rows=3))
    assert (error.status, error.headers) == (503, {"Retry-After": "1"})
    assert batches == [[1], [2, 3, 4]]


def test_a_request_with_more_rows_than_may_wait_is_refused_even_if_none_waits():
    async def steps(model, ask):
        model.go.set()
        await ask(1, 2, 3)
        for numbers in ((1, 2, 3, 4), range(6)):
            with pytest.raises(RequestError, match="3 are allowed") as raised:
                await ask(*numbers)
        return raised.value.status

    assert run(steps, BatchLimits(max_request_rows=5, max_waiting_rows=3)) == (413, [[1, 2, 3]])


def test_a_request_whose_time_is_over_is_dropped():
    async def steps(model, ask):
        tasks = [ask(1)]
        await begun(model)
        with pytest.raises(RequestError) as raised:
            await ask(2)
        model.go.set()
        with pytest.raises(RequestError):
            await tasks[0]
        await ask(3)
        return raised.value.status

    status, batches = run(steps, BatchLimits(timeout_secs=0.05))
    assert status == 504
    assert batches == [[1], [3]]


class Sum:
    """A model with y = a + b, which broadcasts."""

    def run(self, name, inputs):
        return {"y": inputs["a"] + inputs["b"]}


def test_inputs_of_unequal_length_are_not_batched():
    tensor = Tensor("y", tf.float32, (None,))
    inputs = {"a": tensor, "b": tensor}
    adding = Signature("sum", "predict", inputs, {"y": tensor}, {}, False, None)

    async def main():
        batcher, model = Batcher(LIMITS, ServerMetrics()), Sum()
        given = [([1, 2], [100]), ([1], [1]), ([5], [1, 2])]
        tasks = [
            batcher.run(model, adding, {"a": np.array(a, float), "b": np.array(b, float)}, len(a))
            for a, b in given
        ]
        return [found["y"].tolist() for found in await asyncio.gather(*tasks)]

    assert asyncio.run(main()) == [[101, 102], [2], [6, 7]]
