"""Publishing the chief's model in a cluster, so that workers can compare it with their own."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.cluster.server import Task, answers
from estimator_core.logs import logger

_NAME = "estimator_core/model_of_the_chief"
_ANSWER_SECS = 10.0
_LISTED = 5


class Model:
    """The properties of a model that all tasks of a cluster must agree on."""

    def __init__(self, tensorflow: str, variables: dict[str, list[str]]):
        self.tensorflow = tensorflow
        self.variables = variables

    @classmethod
    def from_graph(cls, graph: tf.Graph) -> Model:
        return cls(
            tf.__version__,
            {
                variable.name.rpartition(":")[0]: [variable.dtype.base_dtype.name, str(variable.shape)]
                for variable in graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
            },
        )

    def why_not_equal(self, chief: Model) -> str | None:
        """Returns the reason why a worker with this model can't train with the chief; None if it can.

        The chief may have variables that the worker does not have.
        """
        if _release(self.tensorflow) != _release(chief.tensorflow):
            return (
                f"This task has TensorFlow {self.tensorflow}, and the chief has TensorFlow "
                f"{chief.tensorflow}."
            )
        other = [
            f"{name!r}: {_words(own)} here, {_words(chief.variables.get(name))} at the chief"
            for name, own in sorted(self.variables.items())
            if own != chief.variables.get(name)
        ]
        if not other:
            return None
        more = f", and {len(other) - _LISTED} more" if len(other) > _LISTED else ""
        return f"Its variables are not those of the chief: {'; '.join(other[:_LISTED])}{more}."


class ChiefModel:
    """The model that the chief trains, kept in the chief's process and lost when that ends."""

    def __init__(self, chief: Task, own: Task, master: str):
        self._chief = chief
        self._own = own
        self._master = master
        self._is_published = False

    def publish(self, model: Model) -> None:
        """Publishes the chief's model to the workers.

        If the machine is too busy to do so, training continues and the workers compare nothing.
        """
        try:
            self._write(json.dumps([model.tensorflow, model.variables]))
        except tf.errors.DeadlineExceededError as error:
            logger.warning("The workers can't compare their models with the chief's: %s", error.message)
        self._is_published = True

    def take_back(self) -> None:
        """Removes the published model, because the chief may train another model next."""
        if self._is_published:
            with contextlib.suppress(tf.errors.OpError):
                self._write("")

    def _write(self, content: str) -> None:
        with tf.Graph().as_default():
            self._run(tf.raw_ops.AssignVariableOp(resource=self._handle(), value=tf.constant(content)))

    def read(self) -> Model | None:
        """Returns the published model; None if there is none or the chief does not answer."""
        if not answers(self._chief.address):
            return None
        with tf.Graph().as_default():
            value = tf.raw_ops.ReadVariableOp(resource=self._handle(), dtype=tf.string)
            try:
                content = self._run(value)
            except (
                tf.errors.FailedPreconditionError,  # nothing is published yet
                tf.errors.NotFoundError,
                tf.errors.DeadlineExceededError,  # the chief has ended
                tf.errors.UnavailableError,
                tf.errors.AbortedError,
            ):
                return None
        return Model(*json.loads(content)) if content else None

    def _handle(self) -> tf.Tensor:
        with tf1.device(f"/job:{self._chief.kind}/task:{self._chief.index}/device:CPU:0"):
            return tf.raw_ops.VarHandleOp(dtype=tf.string, shape=[], shared_name=_NAME)

    def _run(self, fetch: Any) -> Any:
        config = tf1.ConfigProto(operation_timeout_in_ms=int(_ANSWER_SECS * 1000))
        for task in (self._chief, self._own):
            config.device_filters.append(f"/job:{task.kind}/task:{task.index}")
        with tf1.Session(self._master, config=config) as session:
            return session.run(fetch)


def _release(version: str) -> list[str]:
    """Returns the major and minor version: versions that differ only in the patch number are compatible."""
    return version.split(".")[:2]


def _words(variable: list[str] | None) -> str:
    return "missing" if variable is None else f"{variable[0]} {variable[1]}"
