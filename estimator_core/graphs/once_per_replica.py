"""Checking that an Execution builds the model once for each replica, in the graph of the Program."""

from __future__ import annotations

from typing import Any

from estimator_core import tf1
from estimator_core.execution.base import Execution, StepFn
from estimator_core.spec.estimator_spec import EstimatorSpec


class OncePerReplica:
    """A step function that refuses to be called otherwise than `Execution.build_step` says.

    A model that is built once more has variables of its own, or none: Keras layers, optimizers' slots
    and variables without a name are not found again by `reuse`. Such a step would train a copy.

    Args:
        step_fn: Builds the model.
        execution: What calls it, in the graph that is the default one now.
    """

    def __init__(self, step_fn: StepFn, execution: Execution):
        self._step_fn = step_fn
        self._execution = execution
        self._graph = tf1.get_default_graph()
        self._calls = 0

    def __call__(self, features: Any, labels: Any) -> EstimatorSpec:
        """Builds the model of a replica.

        Raises:
            RuntimeError: There is one for each replica already, or the default graph is another.
        """
        self._calls += 1
        if self._calls > self._execution.num_models:
            raise RuntimeError(f"{self._rule()} Received: call number {self._calls}.")
        graph = tf1.get_default_graph()
        if graph is not self._graph:
            raise RuntimeError(f"{self._rule()} Received: a call in a {type(graph).__name__}.")
        return self._step_fn(features, labels)

    def check_done(self) -> None:
        """Checks that there is a model for each replica.

        Raises:
            RuntimeError: There are fewer.
        """
        if self._calls < self._execution.num_models:
            raise RuntimeError(f"{self._rule()} Received: {self._calls} calls.")

    def _rule(self) -> str:
        return (
            f"{type(self._execution).__name__}.build_step must call step_fn exactly once for each replica "
            f"(num_replicas={self._execution.num_models}), in the graph in which it is called. A loop over "
            "steps repeats the train_op of the finished step; it does not build the model again."
        )
