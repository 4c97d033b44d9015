"""A check that an Execution builds the model once for each replica, in the graph of the Program."""

from __future__ import annotations

from typing import Any

from estimator_core import tf1
from estimator_core.execution.base import Execution, StepFn
from estimator_core.spec.estimator_spec import EstimatorSpec


class OncePerReplica:
    """A step function that enforces the rules of `Execution.build_step` on its calls.

    A model that is built a second time has its own variables, or none: `reuse` does not find Keras layers,
    optimizers' slots or unnamed variables again. Such a step would train a copy.

    `execution`: execution that calls it, in the current default graph.
    """

    def __init__(self, step_fn: StepFn, execution: Execution):
        self._step_fn = step_fn
        self._execution = execution
        self._graph = tf1.get_default_graph()
        self._calls = 0

    def __call__(self, features: Any, labels: Any) -> EstimatorSpec:
        """Builds the model of a replica."""
        self._calls += 1
        if self._calls > self._execution.num_models:
            raise RuntimeError(f"{self._rule()} Received: call number {self._calls}.")
        graph = tf1.get_default_graph()
        if graph is not self._graph:
            raise RuntimeError(f"{self._rule()} Received: a call in a {type(graph).__name__}.")
        return self._step_fn(features, labels)

    def check_done(self) -> None:
        """Checks that there is a model for each replica."""
        if self._calls < self._execution.num_models:
            raise RuntimeError(f"{self._rule()} Received: {self._calls} calls.")

    def _rule(self) -> str:
        return (
            f"{type(self._execution).__name__}.build_step must call step_fn exactly once for each replica "
            f"(num_replicas={self._execution.num_models}), in the graph in which it is called. A loop over "
            "steps repeats the train_op of the finished step; it does not build the model again."
        )
