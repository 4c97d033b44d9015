"""Trains a model for a number of steps: by an Estimator, by Keras's fit, by the bare loop of floor.py."""

import dataclasses
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.workloads import floor
from benchmarks.workloads.clock import Clock

_CHECKED_BATCHES = 20


@dataclasses.dataclass(frozen=True)
class Training:
    """A model and its data, for each way to train it."""

    batch_size: int  # Number of examples in a batch
    input_fn: Callable[[], Any]  # Returns an endless dataset of (features, labels)
    # Function from an Estimator API and its RunConfig to an Estimator
    make_estimator: Callable[[Any, Any], Any]
    # Function from `steps_per_execution` and `jit_compile` to the same model, compiled; None if
    # there is no such model
    make_keras: Callable[[int, bool], Any] | None = None
    # Returns the `floor.Model` of the same network; None if there is none
    make_floor: Callable[[], floor.Model] | None = None
    # Function from an Estimator API to the user's hooks
    hooks: Callable[[Any], list[Any]] = lambda estimator: []
    warm_up_steps: int = 300  # Number of steps before the measured ones
    steps: int = 2000  # Number of measured steps


def by_estimator(work, estimator, config, check):
    """Returns the time of each step of training by an Estimator."""
    stopwatch = _stopwatch(estimator, work.warm_up_steps, work.steps)
    with tempfile.TemporaryDirectory() as model_dir:
        model = work.make_estimator(estimator, estimator.RunConfig(model_dir=model_dir, **config))
        max_steps = work.warm_up_steps + work.steps
        model.train(work.input_fn, hooks=[stopwatch, *work.hooks(estimator)], max_steps=max_steps)
        measured = stopwatch.last.since(stopwatch.first, work.steps)
        if check:
            metrics = model.evaluate(work.input_fn, steps=_CHECKED_BATCHES)
            loss = metrics.get("average_loss", metrics["loss"])
            measured["check"] = checked(work, stopwatch.parameters, metrics["global_step"], loss)
    return measured


def by_keras(work, steps_per_execution, jit_compile, check):
    """Returns the time of each step of Keras's fit."""
    model = work.make_keras(steps_per_execution, jit_compile)
    data = work.input_fn()
    # The number of steps is a multiple of steps_per_execution, so that nothing is compiled twice.
    model.fit(data, steps_per_epoch=work.warm_up_steps, verbose=0)
    start = Clock()
    model.fit(data, steps_per_epoch=work.steps, verbose=0)
    measured = Clock().since(start, work.steps)
    if check:
        parameters = [variable.shape for variable in model.trainable_variables]
        steps = int(model.optimizer.iterations)
        loss = model.evaluate(work.input_fn(), steps=_CHECKED_BATCHES, verbose=0)
        measured["check"] = checked(work, parameters, steps, loss)
    return measured


def by_floor(work, jit_compile, check):
    """Returns the time of each step of the bare loop."""
    model = work.make_floor()
    loop = floor.Loop(model, jit_compile)
    loop.run(work.warm_up_steps)
    start = Clock()
    loop.run(work.steps)
    measured = Clock().since(start, work.steps)
    if check:
        parameters = [parameter.shape for parameter in loop.parameters]
        loss = loop.mean_loss(_CHECKED_BATCHES)
        measured["check"] = checked(work, parameters, loop.steps, loss)
    return measured


def by_input(work):
    """Returns the time of reading a batch, without a model."""

    @tf.function
    def read(batches, number):
        for _ in tf.range(number):
            next(batches)

    batches = iter(work.input_fn())
    read(batches, work.warm_up_steps)
    start = Clock()
    read(batches, work.steps)
    return Clock().since(start, work.steps)


def checked(work, parameters, steps, loss):
    """Returns the values that must be equal for all contestants of the same work."""
    features, _ = next(iter(work.input_fn()))
    batch_size = {int(values.shape[0]) for values in tf.nest.flatten(features)}
    if batch_size != {work.batch_size}:
        raise ValueError(f"A batch has {work.batch_size} examples. Received: {batch_size}")
    return {
        "batch_size": work.batch_size,
        "variables": len(parameters),
        "parameters": int(sum(np.prod([int(size) for size in shape]) for shape in parameters)),
        "steps": int(steps),
        "loss": float(loss),
    }


def _stopwatch(estimator, warm_up_steps, steps):
    class Stopwatch(estimator.SessionRunHook):
        """Records the time after the warm-up and at the last step, and the shapes of the variables.

        The two methods after `begin` are ours: they declare that it is not called at every step.
        """

        def begin(self):
            self.done, self.first, self.last = 0, None, None
            self.parameters = [value.shape for value in tf.compat.v1.trainable_variables()]

        def steps_until_due(self, global_step):
            return max(warm_up_steps - global_step, 0) or warm_up_steps + steps - global_step

        def skip_steps(self, steps):
            self.done += steps

        def after_run(self, run_context, run_values):
            self.done += 1
            if self.done == warm_up_steps:
                self.first = Clock()
            self.last = Clock()

    return Stopwatch()
