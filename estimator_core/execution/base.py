"""Execution: the seam between what a model computes and how its graph runs."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from estimator_core.execution.inputs import Inputs
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.types import InputFn

StepFn: TypeAlias = Callable[[Any, Any], EstimatorSpec]
"""Builds the model for one batch: a function of (features, labels)."""

GradientUpdate: TypeAlias = tuple[Any, Any, Callable[[Any, Any], Any]]
"""Gradient, variable, and a function of (component of the variable, gradient) that updates it."""


class Step(NamedTuple):
    """A step in the graph: what one `session.run` executes.

    Attributes:
        spec: The step of all replicas together. Running its `train_op` is one training step.
        advance: Function of (session, number of steps) that makes so many training steps and hands
            out nothing; None when there is no faster way than one `session.run` for each.
    """

    spec: EstimatorSpec
    advance: Callable[[Any, int], None] | None = None


class Execution(abc.ABC):
    """One way to run the graph of a model.

    The graphs and loops of training, evaluation and prediction (`estimator_core.graphs`) are written
    against this interface alone; a new way of running is a new subclass and a line in `select.py`.
    Heads and optimizers find the one that their graph is built for with `current_execution`.
    """

    num_replicas: int = 1
    """Copies of the model that take part in one step; each takes a batch of its own."""

    steps_per_session_run: int = 1
    """Training steps that one session call makes at most; above 1, `build_step` gives `advance`."""

    is_chief: bool = True
    """Whether this process saves checkpoints and writes summaries."""

    strategy: Any = None
    """The `tf.distribute.Strategy` for Keras objects that ask for one; None when there is none."""

    # Building the graph

    @abc.abstractmethod
    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context in which the whole graph is built."""

    @abc.abstractmethod
    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns the iterator over what `input_fn`, called within the graph, provides.

        Args:
            input_fn: Function without arguments, or of the `tf.distribute.InputContext`.
            mode: One of `ModeKeys`; for prediction the labels are left out.
        """

    @abc.abstractmethod
    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the whole step, after calling `step_fn` for each replica with a batch of its own.

        Args:
            inputs: What `make_inputs` returned.
            step_fn: Builds the model in the current graph.
            mode: One of `ModeKeys`.
        """

    @abc.abstractmethod
    def session_creator(
        self,
        scaffold: Any,
        *,
        checkpoint_dir: str | None = None,
        checkpoint_path: str | None = None,
    ) -> Any:
        """Returns the `SessionCreator` that restores from the newest checkpoint or the given one.

        Args:
            scaffold: The spec's `Scaffold`.
            checkpoint_dir: Directory whose newest checkpoint is restored, if it has one.
            checkpoint_path: Checkpoint to restore; None with no `checkpoint_dir` initialises anew.
        """

    # For what builds a model: losses, gradients and variables of one replica

    @property
    def is_replicated(self) -> bool:
        """Whether copies of the model meet in the graph, so that none can be traced apart from it."""
        return False

    @property
    def is_in_replica(self) -> bool:
        """Whether the code that runs now builds one of the copies."""
        return False

    def share_of_mean(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns what a replica minimizes for the mean loss of its batch.

        The gradients of all replicas are added up.
        """
        return loss

    def losses_as_they_are(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a context in which `tf.compat.v1.train` optimizers do not scale the loss."""
        return contextlib.nullcontext()

    def components(self, variable: Any) -> tuple[Any, ...]:
        """Returns the variable of each replica, or the one variable that there is."""
        return (variable,)

    def update_by_sums(self, updates: Sequence[GradientUpdate], counter: Any) -> tf.Operation:
        """Returns the op that updates each variable by the sum of all replicas' gradients.

        Args:
            updates: What is updated, by what and how; the same in each replica.
            counter: Integer variable to which 1 is added when all of it is done.
        """
        done = [update(variable, gradient) for gradient, variable, update in updates]
        with tf.control_dependencies(done):
            return tf.group(counter.assign_add(1))
