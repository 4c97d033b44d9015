"""Execution: the interface between a model's computation and the way its graph runs."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from estimator_core.execution.inputs import Inputs
from estimator_core.execution.restored_session import KeptSession
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.types import InputFn

StepFn: TypeAlias = Callable[[Any, Any], EstimatorSpec]
"""Builds the model of one replica for one batch: a function of (features, labels).

`Execution.build_step` calls it exactly `num_models` times, that is once for each replica or once in total, in
the graph in which `build_step` itself is called; any other call raises a RuntimeError. A second model could
not share the variables of the first: Keras layers, optimizers' slots and unnamed variables are created again
even under `reuse`.

In mode TRAIN, the `train_op` of the spec is the whole step of that replica: it updates the variables, the
state of Keras layers and the global step. It is run or repeated as it is.
"""

GradientUpdate: TypeAlias = tuple[Any, Any, Callable[[Any, Any], Any]]
"""Gradient, variable, and a function of (component of the variable, gradient) that updates it."""


class Step(NamedTuple):
    """A step in the graph, executed by one `session.run`."""

    # Spec of all replicas together. Running its `train_op` is one training step.
    spec: EstimatorSpec
    # Function of (session, number of steps) that makes that many training steps, or fewer if the loss of a
    # step is NaN, which is then the last one. Returns whether the loss of its last step is NaN. None if one
    # `session.run` makes one step. In mode EVAL, it evaluates that many batches and returns nothing. In mode
    # TRAIN:
    # - The session is the `tf.compat.v1.Session` itself: running it calls no hook.
    # - The number is 1 or more, and less than `steps_per_session_run`.
    # - A step does everything that `spec.train_op` does. A loop in the graph repeats the existing operations:
    #   it imports a copy of the subgraph of `train_op` into its body, where the copy uses the variables,
    #   iterators and tables of the graph. It does not call the `StepFn` again.
    # - Steps run one after the other: each reads the variables that the previous step wrote, and the next
    #   batch.
    # - At the end of the input it raises `tf.errors.OutOfRangeError`, after making the steps for which every
    #   replica had a batch. Their results are kept, and the global step counts them. The operations of a step
    #   that need no batch are run once more, by `advance` or by `end`.
    advance: Callable[[Any, int], bool | None] | None = None
    # Adds operations to the default graph that make `advance` faster; `advance` also works without
    # them. Called before the session is created if many calls of `advance` are to come; in mode
    # EVAL, possibly later, between two calls. It may return the largest number of steps that a call
    # makes from then on, regardless of time.
    prepare: Callable[[], int | None] | None = None
    # Function of the session that returns the loss of the last step that `advance` made before it
    # found the end of the input. None if it is not known.
    last_loss: Callable[[Any], Any] | None = None
    # Function of the session, called after `advance` has found the end of the input and the steps
    # before it are counted. Unless `advance` has done so, it runs the operations of a step that
    # need no batch, as one `session.run` of the `train_op` does at the end of the input; that may
    # raise another `tf.errors.OutOfRangeError`. None if `advance` always does it.
    end: Callable[[Any], None] | None = None
    # Function that returns, in mode EVAL, the number of batches evaluated by the last call of
    # `advance`, even if it ended with an error. None without an `advance`.
    batches_made: Callable[[], int] | None = None
    # Function that returns the seconds that the steps made by `advance` have waited for their
    # batches so far. None if it is not known.
    waited_secs: Callable[[], float | None] | None = None


class LoopSize(NamedTuple):
    """Length of a loop of training steps, in steps or in seconds."""

    steps: int = 1  # Number of steps, if no time is given
    secs: float | None = None  # Seconds that the loop takes; None makes `steps` steps


class GradientTaker(Protocol):
    """Takes the gradients of variables that the model's optimizers do not update.

    Each method gets pairs of gradient and variable, and returns those left for the optimizer.
    """

    def computed(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Takes from the gradients that an optimizer has computed."""

    def summed_when_applied(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Takes from the gradients that a `CrossShardOptimizer` is about to sum and apply."""

    def applied(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Takes from the gradients that any other optimizer is about to apply."""


class Execution(abc.ABC):
    """One way to run the graph of a model.

    The graphs and loops of training, evaluation and prediction (`estimator_core.graphs`) are written
    against this interface alone. A new way of running is a new subclass, and a condition in
    `select_execution` that returns it for the right `RunConfig` and mode. Heads and optimizers get the
    Execution of their graph from `current_execution`.
    """

    num_replicas: int = 1
    """Copies of the model that take part in one step; each takes its own batch."""

    @property
    def num_models(self) -> int:
        """Calls of the `StepFn` by `build_step`: one for each replica, unless the model is copied."""
        return self.num_replicas

    num_tasks_in_step: int = 1
    """Processes that make each training step together; none can make a step without the others."""

    steps_per_session_run: int = 1
    """Largest number of training steps, or evaluated batches, in one session call.

    Above 1, the `Step` of mode TRAIN has an `advance`. It makes all steps of a call but the last, which is
    an ordinary `session.run` with hooks. The `Step` of mode EVAL may have one, too.
    """

    session_call_secs: float | None = None
    """Approximate seconds of a session call of many training steps; None sets no time."""

    loop_size: LoopSize | None = None
    """Length of a loop of training steps around which hooks are called, as on a TPU.

    None calls hooks at the steps at which they are due.
    """

    is_chief: bool = True
    """True if this process saves checkpoints and writes summaries."""

    gradient_taker: GradientTaker | None = None
    """Takes gradients from the optimizers of the model being built; None takes none."""

    strategy: Any = None
    """The `tf.distribute.Strategy` for Keras objects that need one; None if there is none."""

    @property
    def shards_of_optimizers(self) -> int | None:
        """Number of shards over which a `CrossShardOptimizer` averages; None if there are no shards."""
        return None

    # Building the graph

    @abc.abstractmethod
    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context in which the whole graph is built."""

    @abc.abstractmethod
    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns the iterator over the data of `input_fn`, which is called within the graph.

        `input_fn`: function without arguments, or of the `tf.distribute.InputContext`.
        `mode`: one of `ModeKeys`; for prediction the labels are left out.
        """

    @abc.abstractmethod
    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the whole step, after calling `step_fn` exactly `num_models` times.

        Each replica has its own batch: one of `inputs.next_batches(num_replicas)`, or that of
        `inputs.next_batch()`. In mode EVAL, `with_evaluation_metrics` is applied to the spec of each
        replica, within the replica: it calls the function of the metrics, and adds the metric "loss".

        `step_fn`: function that builds the model of a replica. It must be called in the current default
        graph, not in the body of a loop or of a `tf.function`; anything else raises a RuntimeError.
        """

    @abc.abstractmethod
    def session_creator(
        self, scaffold: Any, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns the `SessionCreator` that restores from the newest checkpoint or the given one.

        `checkpoint_path`: checkpoint to restore; with neither, the variables are initialized.
        """

    def restored_session(self, scaffold: Any, checkpoint_path: str, kept: KeptSession | None = None) -> Any:
        """Returns a session with the values of a checkpoint, without adding operations to the graph.

        Only for a graph that the user's hooks do not see.

        `kept`: keeps the session for the next call; None closes it after use.
        Returns the session; None if the `session_creator` has to create it.
        """
        del scaffold, checkpoint_path, kept

    def training(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context in which a training's session is created, used and closed."""
        return contextlib.nullcontext()

    # For code that builds a model: losses, gradients and variables of one replica

    @property
    def is_replicated(self) -> bool:
        """True if copies of the model interact in the graph, so that none can be traced separately."""
        return False

    @property
    def copies_operations(self) -> bool:
        """True if one model is built and the others are copies of its operations.

        The model may be traced separately if its operations are then put into the graph.
        """
        return False

    @property
    def is_in_replica(self) -> bool:
        """True if the running code builds one of the copies."""
        return False

    def share_of_mean(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the loss that a replica minimizes for the mean loss of its batch.

        The gradients of all replicas are added up.
        """
        return loss

    def whole_sum(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the loss that an evaluation reports, given the sum over the examples of a replica."""
        return loss

    def sum_gradients(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the pairs of gradient and variable to give to an optimizer, for the share of a loss.

        In most ways of running, the optimizer adds up the gradients of the replicas.
        """
        return list(pairs)

    def average_gradients(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the pairs to give to an optimizer for a mean loss that the user's code minimizes."""
        return list(pairs)

    def sum_over_replicas(self, gradient: Any) -> Any:
        """Returns the sum of a gradient, a `Tensor` or `IndexedSlices`, over the replicas."""
        return gradient

    @contextlib.contextmanager
    def taking_gradients(self, taker: GradientTaker | None) -> Iterator[None]:
        """Opens a context in which `taker` takes gradients from optimizers."""
        previous, self.gradient_taker = self.gradient_taker, taker
        try:
            yield
        finally:
            self.gradient_taker = previous

    def mean_over_replicas(self, value: tf.Tensor) -> tf.Tensor:
        """Returns the mean of a value over the replicas of this process; each of them calls it."""
        return value

    def read_over_replicas(self, function: Callable[[], Any]) -> Any:
        """Returns the result of a function that reads variables; each replica calls it.

        It is called once, where variables that are summed or averaged when read have the value of all
        replicas, and not of one.
        """
        return function()

    def losses_as_they_are(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a context in which `tf.compat.v1.train` optimizers do not scale the loss."""
        return contextlib.nullcontext()

    def components(self, variable: Any) -> tuple[Any, ...]:
        """Returns the variable of each replica, or the only variable."""
        return (variable,)

    def update_by_sums(self, updates: Sequence[GradientUpdate], counter: Any) -> tf.Operation:
        """Returns the op that updates each variable by the sum of all replicas' gradients.

        `updates`: gradient, variable and function of each update; the same variables in each replica.
        """
        done = [update(variable, gradient) for gradient, variable, update in updates]
        with tf.control_dependencies(done):
            return tf.group(counter.assign_add(1))
