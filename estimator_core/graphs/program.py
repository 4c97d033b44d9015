"""Program: the built graph of one mode, to be run by a loop."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from estimator_core.execution.base import Execution, Step
from estimator_core.execution.current import building
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.restored_session import KeptSession
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec


@dataclasses.dataclass(frozen=True)
class Program:
    """A model's graph in one mode."""

    graph: tf.Graph  # The graph; operations are added to it within `scope()`
    execution: Execution
    inputs: Inputs
    step: Step  # Step that one `session.run` executes
    # Values that the mode's loop fetches: (train_op, loss) in TRAIN, the pair of
    # `evaluation_fetches` in EVAL, the predictions in PREDICT.
    fetches: Any
    config: RunConfig  # Intervals of checkpoints, summaries and log lines
    kept: KeptSession | None = None  # Keeps the session for the next use of the program

    @property
    def spec(self) -> EstimatorSpec:
        """The spec of all replicas together."""
        return self.step.spec

    @contextlib.contextmanager
    def scope(self) -> Iterator[tf.Graph]:
        """Makes the graph the default graph, with the devices and the scope that it was built in."""
        with new_scope(self.graph, self.execution, self.config):
            yield self.graph

    def with_scaffold(self, scaffold: Any) -> Program:
        """Returns the program with another `Scaffold`, which starts sessions and holds the saver."""
        step = self.step._replace(spec=self.spec._replace(scaffold=scaffold))
        return dataclasses.replace(self, step=step)

    def session_creator(
        self, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns the `SessionCreator` of the graph's sessions; see `Execution.session_creator`."""
        return self.execution.session_creator(
            self.spec.scaffold, checkpoint_dir=checkpoint_dir, checkpoint_path=checkpoint_path
        )

    def restored_session(self, checkpoint_path: str) -> Any:
        """Returns a session of the graph, which is the default graph; see `Execution.restored_session`."""
        return self.execution.restored_session(self.spec.scaffold, checkpoint_path, self.kept)


@contextlib.contextmanager
def new_scope(graph: tf.Graph, execution: Execution, config: RunConfig) -> Iterator[None]:
    """Opens the graph, device and Execution contexts in which a whole graph is built."""
    with graph.as_default(), graph.device(config.device_fn), building(graph, execution):
        yield
