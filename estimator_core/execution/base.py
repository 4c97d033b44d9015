"""Execution: the seam between what a model computes and how its graph runs."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from estimator_core.execution.inputs import Inputs
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.types import InputFn

StepFn: TypeAlias = Callable[[Any, Any], EstimatorSpec]
"""Builds the model of one replica for one batch: a function of (features, labels).

`Execution.build_step` calls it exactly once for each replica, or once in all (`num_models`), in the graph in
which it is itself called; otherwise it raises a RuntimeError. A second model could not share the variables of
the first: Keras layers, slots of optimizers and variables without a name are made anew, whatever `reuse`
says.

In mode TRAIN the `train_op` of the spec is the whole step of that replica: the update of the variables and
of what Keras layers keep, and the global step. It is run or repeated as it is.
"""

GradientUpdate: TypeAlias = tuple[Any, Any, Callable[[Any, Any], Any]]
"""Gradient, variable, and a function of (component of the variable, gradient) that updates it."""


class Step(NamedTuple):
    """A step in the graph: what one `session.run` executes.

    Attributes:
        spec: The step of all replicas together. Running its `train_op` is one training step.
        advance: Function of (session, number of steps) that makes that many training steps, or fewer
            when the loss of one is NaN: that one is its last. It returns whether the loss of its last step
            is NaN. None when one `session.run` makes one step. In mode EVAL it evaluates that many batches
            and returns nothing; what follows is of mode TRAIN.

            - The session is the `tf.compat.v1.Session` itself: running it calls no hook.
            - The number is 1 or more, and less than `steps_per_session_run`.
            - A step is all that `spec.train_op` does. A loop in the graph repeats the operations that
              are there: it imports a copy of the subgraph of `train_op` into its body, where the copy
              uses the variables, iterators and tables of the graph. It does not call the `StepFn` again.
            - Steps come one after the other: each reads the variables that the one before it wrote, and
              the next batch.
            - At the end of the input it raises `tf.errors.OutOfRangeError`, having made the steps for
              which there was a batch for every replica. They are kept, and the global step counts them.
              What of a step needs no batch is done once more, by it or by `end`.
        prepare: Adds to the graph, the default one, what makes `advance` faster; it works without. It is
            called before the session is there, when many calls of `advance` are to come; in mode EVAL
            maybe later, between two calls. It may return how many steps a call makes at most from then on,
            whatever time they take.
        last_loss: Function of the session that returns the loss of the last step that `advance` made,
            when that has found the end of the input after it. None when it is not known.
        end: Function of the session that is called when `advance` has found the end of the input, and the
            steps before it are counted. It does what of a step needs no batch, as one `session.run` of the
            `train_op` does at the end of the input, unless `advance` has done it; that may raise another
            `tf.errors.OutOfRangeError`. None if `advance` always does it.
        batches_made: In mode EVAL, returns how many batches the last `advance` has evaluated, which may
            have ended with an error. None without an `advance`.
        waited_secs: Returns for how many seconds the steps that `advance` has made so far have waited for
            their batches. None when it is not known.
    """

    spec: EstimatorSpec
    advance: Callable[[Any, int], bool | None] | None = None
    prepare: Callable[[], int | None] | None = None
    last_loss: Callable[[Any], Any] | None = None
    end: Callable[[Any], None] | None = None
    batches_made: Callable[[], int] | None = None
    waited_secs: Callable[[], float | None] | None = None


class LoopSize(NamedTuple):
    """How long a loop of training steps is.

    Attributes:
        steps: How many it makes, when there is no time.
        secs: Seconds that it takes; None makes so many steps.
    """

    steps: int = 1
    secs: float | None = None


class GradientTaker(Protocol):
    """Takes the gradients of variables that the optimizers of a model do not update.

    Each method gets pairs of gradient and variable, and returns those that the optimizer goes on with.
    """

    def computed(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Takes those that an optimizer has computed."""

    def summed_when_applied(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Takes those that a `CrossShardOptimizer` is to sum up and apply."""

    def applied(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Takes those that any other optimizer is to apply."""


class Execution(abc.ABC):
    """One way to run the graph of a model.

    The graphs and loops of training, evaluation and prediction (`estimator_core.graphs`) are written
    against this interface alone. A new way of running is a new subclass, and a condition in
    `select_execution` that returns it for the `RunConfig` and the mode that ask for it.
    Heads and optimizers find the one that their graph is built for with `current_execution`.
    """

    num_replicas: int = 1
    """Copies of the model that take part in one step; each takes a batch of its own."""

    @property
    def num_models(self) -> int:
        """Models that `build_step` has its `StepFn` build: one for each replica, unless it copies one."""
        return self.num_replicas

    num_tasks_in_step: int = 1
    """Processes that make each training step together; none can make one without the others."""

    steps_per_session_run: int = 1
    """Training steps, or evaluated batches, that one session call makes at most.

    Above 1, the `Step` of mode TRAIN has an `advance`. It makes all steps of a call but the last, which is
    an ordinary `session.run` with hooks. That of mode EVAL may have one, too.
    """

    session_call_secs: float | None = None
    """How long a session call of many training steps takes, about; None sets no time."""

    loop_size: LoopSize | None = None
    """How long a loop of training steps is around which hooks are called, as on a TPU.

    None calls hooks at the steps that they are due at.
    """

    is_chief: bool = True
    """Whether this process saves checkpoints and writes summaries."""

    gradient_taker: GradientTaker | None = None
    """Takes gradients from the optimizers of the model that is built; None takes none."""

    strategy: Any = None
    """The `tf.distribute.Strategy` for Keras objects that ask for one; None when there is none."""

    @property
    def shards_of_optimizers(self) -> int | None:
        """Shards over which a `CrossShardOptimizer` averages; None where there are none."""
        return None

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
        """Returns the whole step, after calling `step_fn` exactly `num_models` times.

        Each replica has a batch of its own: one of `inputs.next_batches(num_replicas)`, or the one of
        `inputs.next_batch()`. In mode EVAL the spec of each replica goes through
        `with_evaluation_metrics`, in the replica: it calls the function of the metrics, and adds the
        metric "loss".

        Args:
            inputs: What `make_inputs` returned.
            step_fn: Builds the model of a replica. It is called in the graph that is the current one now,
                not in the body of a loop or of a `tf.function`; anything else raises a RuntimeError.
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

    def restored_session(self, scaffold: Any, checkpoint_path: str) -> Any:
        """Returns a session with the values of a checkpoint, for which the graph needs nothing more.

        It is for a graph that no hooks of the user's look at.

        Args:
            scaffold: The spec's `Scaffold`.
            checkpoint_path: Checkpoint to restore.

        Returns:
            None if the `session_creator` has to create it.
        """
        del scaffold, checkpoint_path

    def training(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context in which the session of a training is created, runs and ends."""
        return contextlib.nullcontext()

    # For what builds a model: losses, gradients and variables of one replica

    @property
    def is_replicated(self) -> bool:
        """Whether copies of the model meet in the graph, so that none can be traced apart from it."""
        return False

    @property
    def copies_operations(self) -> bool:
        """Whether one model is built, and the others are copies of its operations.

        It may be traced apart from the graph, if its operations are then put into it.
        """
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

    def whole_sum(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns what an evaluation reports of a loss that is a sum over the examples of a replica."""
        return loss

    def sum_gradients(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns pairs of gradient and variable as an optimizer takes them, for the share of a loss.

        Most ways of running have the optimizer add up what the replicas have.
        """
        return list(pairs)

    def average_gradients(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the same for the gradients of a mean loss, which the user's code minimizes itself."""
        return list(pairs)

    def sum_over_replicas(self, gradient: Any) -> Any:
        """Returns the sum of what the replicas have for a gradient, a `Tensor` or `IndexedSlices`."""
        return gradient

    @contextlib.contextmanager
    def taking_gradients(self, taker: GradientTaker | None) -> Iterator[None]:
        """Opens a context in which `taker` takes gradients from optimizers."""
        before, self.gradient_taker = self.gradient_taker, taker
        try:
            yield
        finally:
            self.gradient_taker = before

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
