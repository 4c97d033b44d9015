"""compose: builds a model_fn from a head, and logits with their optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from estimator_core import tf1
from estimator_core.heads import Head
from estimator_core.optimizers.minimize import OptimizedPart, minimize_parts
from estimator_core.spec.arguments import checked_features
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.settled import with_parts
from estimator_core.spec.types import ModelFn


class ModelPart(NamedTuple):
    """A part of a model: a function that builds logits, and the optimizer of its variables.

    Attributes:
        logit_fn: `logit_fn(features, mode)` builds the part in the current graph and returns logits,
            `[batch_size, logits_dimension]`. The part's variables are the trainable ones that its logits
            depend on, except those of earlier parts.
        optimizer: A name, a Keras optimizer, a `tf.compat.v1.train.Optimizer`, or a function that
            returns one.
        learning_rate: Learning rate of an optimizer given by name; None means the optimizer's default.
    """

    logit_fn: Callable[..., Any]
    optimizer: Any
    learning_rate: float | None = None


class BuiltModel(NamedTuple):
    """A model in the current graph, without a loss yet."""

    head: Head  # Head that turns logits into predictions, loss and metrics
    features: Any  # Dict of feature name to `Tensor` or `SparseTensor`, `[batch_size, ...]`
    labels: Any
    logits: tf.Tensor  # `[batch_size, logits_dimension]`
    parts: Sequence[OptimizedPart]  # The variables and the optimizer of each part


class Training(Protocol):
    """A way to train a composed model."""

    def train_op_fn(self, model: Any) -> Callable[[tf.Tensor], Any]:
        """Returns the function from the loss to the op of one training step."""


class MinimizeParts:
    """Minimizes the loss by each part's optimizer, over the part's own variables."""

    def train_op_fn(self, model: BuiltModel) -> Callable[[tf.Tensor], tf.Operation]:
        """Returns the function from the loss to the op of one training step."""
        return lambda loss: minimize_parts(loss, model.parts)


def compose(head: Head, parts: Sequence[tuple[Any, ...]], training: Training | None = None) -> ModelFn:
    """Returns a `model_fn` whose logits are the sum of the parts' logits.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> head = BinaryClassHead()
        >>> logit_fn = dnn_logit_fn_builder(head.logits_dimension, [16], [price])
        >>> estimator = Estimator(compose(head, [(logit_fn, "Adam")]))

    Args:
        head: Head that turns logits into predictions, loss and metrics.
        parts: `ModelPart`s, or tuples of the same fields.
        training: `Training` that makes the op of a training step; None is `MinimizeParts`.

    Raises:
        ValueError: There are no parts.
    """
    model_parts = [ModelPart(*part) for part in parts]
    if not model_parts:
        raise ValueError("A model needs at least one part: (logit_fn, optimizer). Received: none")
    training = training or MinimizeParts()

    def model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
        del config  # a wrapper around tf.estimator's canned model_fns passes it
        logits, optimized_parts = sum_of_logits(model_parts, features, mode)
        train_op_fn = None
        if mode == ModeKeys.TRAIN:
            model = BuiltModel(head, features, labels, logits, optimized_parts)
            train_op_fn = training.train_op_fn(model)
        return head.create_estimator_spec(
            features, mode, logits=logits, labels=labels, train_op_fn=train_op_fn
        )

    return with_parts(model_fn, [head, *(part.logit_fn for part in model_parts)])


def sum_of_logits(
    parts: Sequence[ModelPart], features: Mapping[str, Any], mode: str
) -> tuple[tf.Tensor, list[OptimizedPart]]:
    """Builds the parts in the current graph; returns the sum of their logits, and their optimizers."""
    features = checked_features(features)
    logits = []
    optimized_parts: list[OptimizedPart] = []
    for part in parts:
        logits.append(part.logit_fn(features, mode))
        taken = [id(v) for earlier in optimized_parts for v in earlier.variables]
        free = [v for v in tf1.trainable_variables() if id(v) not in taken]
        variables = _reached_variables(logits[-1], free)
        optimized_parts.append(OptimizedPart(part.optimizer, variables, part.learning_rate))
    return tf.add_n(logits) if len(logits) > 1 else logits[0], optimized_parts


def _reached_variables(logits: tf.Tensor, candidates: Sequence[Any]) -> list[Any]:
    """Returns the candidates that the logits depend on.

    It walks the graph, since variables may be created, reused or mirrored on several devices.
    """
    reached = {logits.op}
    pending = [logits.op]
    while pending:
        for tensor in pending.pop().inputs:
            if tensor.op not in reached:
                reached.add(tensor.op)
                pending.append(tensor.op)
    return [variable for variable in candidates if variable.op in reached]
