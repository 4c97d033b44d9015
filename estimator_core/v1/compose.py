"""From logits and their optimizers to a model_fn whose names are those of `tf.compat.v1.estimator`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.canned.compose import ModelPart, sum_of_logits
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.optimizers.minimize import OptimizedPart, minimize_parts
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.keys import MetricKeys
from estimator_core.spec.mode_keys import ModeKeys

_INPUT_LAYER_MIN_SLICE_BYTES = 64 << 20


class CannedHead(NamedTuple):
    """The head of a classifier or a regressor, which chooses its own loss reduction.

    Attributes:
        make: Function from a loss reduction to the head with it.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`.
    """

    make: Callable[[str], Head]
    loss_reduction: str

    @property
    def logits_dimension(self) -> int:
        """How many logits the head takes."""
        return self.make(self.loss_reduction).logits_dimension


def compose(
    head: Head | CannedHead,
    parts: Sequence[ModelPart],
    scope: str | None = None,
    partitioner: Callable[..., Any] | None = None,
    make_train_op_fn: Callable[..., Callable[[Any], Any]] | None = None,
) -> Callable[..., EstimatorSpec]:
    """Returns a `model_fn` whose logits are the sum of the parts' logits.

    Args:
        head: What turns logits into predictions, loss and metrics.
        parts: What makes logits, and what trains it.
        scope: Variable scope of the whole model, optimizer slots included; None is the root.
        partitioner: Splits the variables of `scope`.
        make_train_op_fn: Function of (head, features, labels, logits), called within `scope`, that
            returns a function from the loss to the train op; None trains with the parts' optimizers.

    Source: the models of `tf.compat.v1.estimator`: slots are made within the scope of the model (so
    their names in a checkpoint end in "part_0/Ftrl" or "t_0/Adagrad"), and with a sum for the loss
    the mean per example is written as the summary "average_loss".
    """

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        with _variable_scope(scope, partitioner):
            logits, optimized_parts = sum_of_logits(parts, features, mode)
            if isinstance(head, CannedHead):
                any_head, minimize = head.make(head.loss_reduction), _minimize_in_head_scope
            else:
                any_head, minimize = head, minimize_parts
            if make_train_op_fn is not None and mode == ModeKeys.TRAIN:
                train_op_fn = make_train_op_fn(any_head, features, labels, logits)
            else:
                train_op_fn = functools.partial(minimize, parts=optimized_parts)
            spec = any_head.create_estimator_spec(
                features, mode, logits=logits, labels=labels, train_op_fn=train_op_fn
            )
        if not isinstance(head, CannedHead):
            return spec
        if mode == ModeKeys.TRAIN and head.loss_reduction in LossReduction.SUMS:
            mean_head = head.make(LossReduction.WEIGHTED_MEAN)
            mean = mean_head.loss(labels=labels, logits=logits, features=features, mode=mode)
            tf1.summary.scalar(MetricKeys.LOSS_MEAN, mean)
        return spec

    return model_fn


def in_scope(
    logit_fn: Callable[..., Any], scope: str, partitioner: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Returns `logit_fn`, building its variables below a scope and partitioned.

    Args:
        logit_fn: `logit_fn(features, mode)`, which makes its variables in the current scope.
        scope: Variable scope and name scope, which the tags of its summaries begin with as well.
        partitioner: Splits the variables; None takes the current scope's.
    """

    def scoped_logit_fn(features: Mapping[str, Any], mode: str) -> Any:
        with tf1.variable_scope(scope, partitioner=partitioner):
            return logit_fn(features, mode)

    return scoped_logit_fn


def in_name_scope(logit_fn: Callable[..., Any], scope: str) -> Callable[..., Any]:
    """Returns `logit_fn` with a scope for its operations and summaries, not for its variables."""

    def scoped_logit_fn(features: Mapping[str, Any], mode: str) -> Any:
        with tf.name_scope(scope):
            return logit_fn(features, mode)

    return scoped_logit_fn


def hidden_layer_partitioner(config: Any) -> Callable[..., Any]:
    """Returns the partitioner of a network's layers: over parameter servers, from 256 KiB a slice."""
    return tf1.min_max_variable_partitioner(max_partitions=_num_ps_replicas(config))


def input_layer_partitioner_or_default(partitioner: Any, config: Any) -> Callable[..., Any]:
    """Returns the user's partitioner, or one over parameter servers, from 64 MiB a slice."""
    return partitioner or tf1.min_max_variable_partitioner(
        max_partitions=_num_ps_replicas(config), min_slice_size=_INPUT_LAYER_MIN_SLICE_BYTES
    )


def _num_ps_replicas(config: Any) -> int:
    return 0 if config is None else config.num_ps_replicas


@contextlib.contextmanager
def _variable_scope(scope: str | None, partitioner: Callable[..., Any] | None) -> Iterator[None]:
    """Opens a variable scope that leaves names of operations and tags of summaries alone."""
    if scope is None:
        yield
        return
    with tf1.variable_scope(scope, partitioner=partitioner, auxiliary_name_scope=False):
        yield


def _minimize_in_head_scope(loss: tf.Tensor, parts: Sequence[OptimizedPart]) -> tf.Operation:
    # A name scope that ends in a slash is taken as it is. Adam's powers are named by it.
    outer = tf1.get_variable_scope().name
    with tf.name_scope(f"{outer}/head/" if outer else "head/"):
        return minimize_parts(loss, parts)
