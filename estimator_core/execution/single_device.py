"""The plain case: one copy of the model in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.estimator_spec import EstimatorSpec
from estimator_core.execution.base import Execution, Inputs
from estimator_core.mode_keys import ModeKeys


class SingleDevice(Execution):
    """Runs one copy of the model; the identity among executions.

    Args:
        session_config: `ConfigProto` of the sessions.
    """

    def __init__(self, session_config: Any = None):
        self._session_config = session_config

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a context that changes nothing."""
        return contextlib.nullcontext()

    def make_inputs(self, input_fn: Callable[[], Any], mode: str) -> Inputs:
        """Returns the inputs; the input pipeline is placed on the CPU."""
        with tf1.device("/cpu:0"):
            return inputs_from(input_fn(), mode)

    def call_model_fn(
        self, model_fn: Callable[[Any, Any], EstimatorSpec], inputs: Inputs, mode: str
    ) -> EstimatorSpec:
        """Returns `model_fn`'s own spec."""
        return model_fn(inputs.features, inputs.labels)

    def session_creator(
        self,
        scaffold: Any,
        *,
        checkpoint_dir: str | None = None,
        checkpoint_path: str | None = None,
    ) -> Any:
        """Returns the creator of a session in this process."""
        return tf1.train.ChiefSessionCreator(
            scaffold=scaffold,
            config=self._session_config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_path,
        )


class IteratorInitializerHook(tf1.train.SessionRunHook):
    """Starts a dataset's iterator in each new session, the recovered ones included."""

    def __init__(self, iterator: Any):
        self._iterator = iterator

    def begin(self) -> None:
        """Takes the initializer while the graph can still grow."""
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the initializer."""
        del coord
        session.run(self._initializer)


def inputs_from(result: Any, mode: str) -> Inputs:
    """Returns the inputs that the `result` of an input_fn stands for.

    Args:
        result: `tf.data.Dataset` of features or of (features, labels), or such tensors themselves.
        mode: One of `ModeKeys`; for prediction the labels are left out.

    Raises:
        ValueError: `result` is neither.
    """
    hooks: tuple[Any, ...] = ()
    is_endless = False
    if isinstance(result, tf.data.Dataset):
        iterator = tf1.data.make_initializable_iterator(result)
        hooks = (IteratorInitializerHook(iterator),)
        result = iterator.get_next()
    elif result is None:
        raise ValueError(
            "input_fn returned None; it should return a Dataset or (features, labels)."
        )
    else:
        is_endless = not tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        if mode == ModeKeys.PREDICT:
            return Inputs(result[0], None, hooks, is_endless)
        if len(result) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple. "
                f"Received: {len(result)} elements"
            )
        return Inputs(result[0], result[1], hooks, is_endless)
    return Inputs(result, None, hooks, is_endless)
