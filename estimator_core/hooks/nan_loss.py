"""Training ends with an error at the first step whose loss is NaN, however many steps a call makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.logs import logger
from estimator_core.spec.estimator_spec import EstimatorSpec

_NONE = -1  # no step had a NaN loss


class NanStepRecorder:
    """Records, within the step itself, the first step whose loss is NaN.

    It is for steps that are made without calling hooks. A later loss may be a number again: the gradient
    of log(w) is finite where log(w) is NaN.
    """

    def __init__(self) -> None:
        self._steps: list[tf.Tensor] = []
        self._reset: list[tf.Operation] = []

    def add_to(self, spec: EstimatorSpec) -> EstimatorSpec:
        """Returns the spec of a replica whose `train_op` records a NaN loss as well.

        Args:
            spec: What model_fn returned in mode TRAIN for one replica, in whose context this is called.
        """
        if not spec.loss.dtype.is_floating:
            return spec  # an integer is never NaN
        with tf.name_scope("first_nan_step"):
            step = tf1.get_variable(
                "first_nan_step",
                [],
                tf.int64,
                tf1.initializers.constant(_NONE),
                trainable=False,
                collections=[],  # it belongs to a session: no checkpoint has it
                use_resource=True,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )
            self._steps.append(step.read_value())
            self._reset.append(step.initializer)
            with tf.control_dependencies([spec.train_op]):
                global_step = tf.cast(tf1.train.get_global_step().read_value(), tf.int64)
            is_first = tf.reduce_any(tf.math.is_nan(spec.loss)) & tf.equal(step.read_value(), _NONE)
            record = tf.cond(is_first, lambda: step.assign(global_step), lambda: global_step)
            return spec._replace(train_op=tf.group(spec.train_op, record))

    def reset(self, session: Any) -> None:
        """Begins to record in a new session."""
        session.run(self._reset)

    @property
    def fetches(self) -> list[tf.Tensor]:
        """What `first` takes the values of."""
        return self._steps

    @staticmethod
    def first(steps: list[Any]) -> int | None:
        """Returns the first step at which the loss of a replica was NaN; None when there was none.

        Args:
            steps: Values of the fetches.
        """
        return min((int(step) for step in steps if step != _NONE), default=None)


class NanLossHook(tf1.train.SessionRunHook):
    """Ends training with an error when the loss is NaN.

    Args:
        loss: The scalar `Tensor` to watch.
        recorder: Knows of the steps that were made without calling hooks; None when there are none.
        is_asked_seldom: Whether what makes steps without calling hooks looks at their losses itself.

    Raises:
        NanLossDuringTrainingError: From the training call. Its message names the tensor and the step.
    """

    def __init__(
        self, loss: Any, recorder: NanStepRecorder | None = None, is_asked_seldom: bool = False
    ):
        self._loss = loss
        self._recorder = recorder
        self._is_asked_seldom = is_asked_seldom

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns None when the steps in between are looked at: no checkpoint comes before it is called."""
        del global_step
        return None if self._recorder or self._is_asked_seldom else 1

    def skip_steps(self, steps: int) -> None:
        """Counts nothing: the recorder notes the step."""
        del steps

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Begins to record."""
        del coord
        if self._recorder:
            self._recorder.reset(session)

    def before_run(self, run_context: Any) -> Any:
        """Asks for the loss, and for what was recorded before."""
        del run_context
        recorded = self._recorder and self._recorder.fetches
        return tf1.train.SessionRunArgs((self._loss, recorded) if recorded else self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Looks at them."""
        loss, step = run_values.results, None
        if isinstance(loss, tuple):
            loss, recorded = loss
            step = NanStepRecorder.first(recorded)
        if step is None and np.isnan(loss).any():
            step = run_context.session.run(tf1.train.get_global_step(run_context.session.graph))
        self._raise_if_any(step)

    def end(self, session: Any) -> None:
        """Looks at the steps after the last call: the end of the input came among them."""
        if self._recorder:
            self._raise_if_any(self._recorder.first(session.run(self._recorder.fetches)))

    def _raise_if_any(self, step: Any) -> None:
        if step is not None:
            raise_nan_loss(self._loss.name, step)


def raise_nan_loss(tensor_name: str, global_step: Any) -> None:
    """Ends training.

    Args:
        tensor_name: Name of the loss in the graph.
        global_step: The global step after the update that the loss belongs to.

    Raises:
        NanLossAtStepError: Always.
    """
    logger.error("Model diverged with loss = NaN.")
    raise NanLossAtStepError(tensor_name, int(global_step))


class NanLossAtStepError(tf1.train.NanLossDuringTrainingError):
    """The loss became NaN: says which tensor and when.

    Args:
        tensor_name: Name of the loss in the graph.
        global_step: The global step after the update that the loss belongs to.
    """

    def __init__(self, tensor_name: str, global_step: int):
        super().__init__(tensor_name, global_step)
        self.tensor_name = tensor_name
        self.global_step = global_step

    def __str__(self) -> str:
        return (
            f"NaN loss during training: tensor {self.tensor_name!r} at global step "
            f"{self.global_step}. The checkpoints are those from before. Look for a learning rate that "
            "is too high, a logarithm or a division of zero, or NaN in the input."
        )
