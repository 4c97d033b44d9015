"""The operation of a training step that a head makes from its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.optimizers.minimize import minimize


def head_train_op(
    loss: Any,
    loss_reduction: str,
    optimizer: Any = None,
    trainable_variables: Sequence[Any] | None = None,
    train_op_fn: Callable[[Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    scope: str = "training",
) -> Any:
    """Returns the operation of a training step; see the arguments of `Head.create_estimator_spec`.

    `loss_reduction`: one of `LossReduction`; a mean is shared among the replicas.
    `train_op_fn`: function from the loss to a train op, instead of `optimizer`.
    `update_ops`: ops that every training step runs before the update; None means the graph's `UPDATE_OPS`
    collection.
    """
    if (optimizer is None) == (train_op_fn is None):
        raise ValueError(
            "Exactly one of optimizer and train_op_fn must be given in mode TRAIN. "
            f"Received: optimizer={optimizer!r}, train_op_fn={train_op_fn!r}"
        )
    if optimizer is not None and tf.executing_eagerly():
        raise ValueError(
            "An optimizer needs the graph of the loss, and there is none in eager mode: take the "
            "gradients of `loss()` in a tf.GradientTape, or make the EstimatorSpec in a model_fn. "
            f"Received: optimizer={optimizer!r}"
        )
    if loss_reduction in LossReduction.MEANS:
        loss = current_execution().share_of_mean(loss)
    if update_ops is None:
        update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    # Outside of the current scopes: Adam's powers are "training/beta1_power" for every head.
    root, training = tf.name_scope(""), tf.name_scope(scope)
    with root, training, tf.control_dependencies(list(update_ops)):
        if train_op_fn is not None:
            train_op = train_op_fn(loss)
        else:
            train_op = minimize(optimizer, loss, trainable_variables)
    if train_op is None:
        raise ValueError(
            f"train_op_fn must return an op or a tensor. Received: train_op_fn={train_op_fn!r}"
        )
    return tf.group(train_op, *update_ops) if update_ops else train_op
