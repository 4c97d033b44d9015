"""Execution: the seam between what a model computes and how its graph runs."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from estimator_core.spec.estimator_spec import EstimatorSpec


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What input_fn gave, as tensors of the graph.

    Args:
        features: What model_fn receives as `features`.
        labels: What model_fn receives as `labels`; None when input_fn gave none.
        hooks: `SessionRunHook`s that start the input pipeline in each new session.
        is_endless: Whether nothing in the graph can ever end the input.
        replicas: (features, labels) of each replica, when there are several; `features` and `labels`
            are then those of the first.
    """

    features: Any
    labels: Any
    hooks: tuple[Any, ...] = ()
    is_endless: bool = False
    replicas: tuple[tuple[Any, Any], ...] = ()


class Execution(abc.ABC):
    """One way to run the graph of a model.

    The train, evaluate and predict loops (`loops.py`) are written against this interface alone; a
    new way of running is a new subclass and a line in `select.py`.
    """

    num_replicas: int = 1
    """Copies of the model that take part in one step; each takes a batch of its own."""

    steps_per_session_run: int = 1
    """Training steps that one `session.run` executes."""

    is_chief: bool = True
    """Whether this process saves checkpoints and writes summaries."""

    @abc.abstractmethod
    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context in which the whole graph is built."""

    @abc.abstractmethod
    def make_inputs(self, input_fn: Callable[..., Any], mode: str) -> Inputs:
        """Returns the inputs that `input_fn`, called within the graph, provides.

        Args:
            input_fn: Function without arguments, or of the `tf.distribute.InputContext`.
            mode: One of `ModeKeys`; for prediction the labels are left out.
        """

    @abc.abstractmethod
    def call_model_fn(
        self, model_fn: Callable[[Any, Any], EstimatorSpec], inputs: Inputs, mode: str
    ) -> EstimatorSpec:
        """Returns the spec of the whole step, after calling `model_fn(features, labels)`."""

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
