"""The metric ops of `Estimator.evaluate`, made from the spec that model_fn returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.rows import batch_weight

_LOSS = "loss"

SHARE_WITH_ROWS = "share of batches with rows"
"""Name of an internal metric that `evaluate` does not return; present if batches may be empty."""


def with_metric_ops(spec: EstimatorSpec) -> EstimatorSpec:
    """Returns the spec with metrics as `(value, update_op)` pairs, calling the metric function if any.

    Each Execution calls this, or `with_evaluation_metrics`, where all tensors for one update of the metrics
    are available.
    """
    if isinstance(spec.eval_metric_ops, MetricFn):
        return spec._replace(eval_metric_ops=spec.eval_metric_ops())
    return spec


def with_evaluation_metrics(spec: EstimatorSpec, batch: Any = None) -> EstimatorSpec:
    """Returns the spec with metric ops, and with the metric "loss": the mean of the batches' losses.

    A batch without rows does not count: its mean loss is NaN, and its summed loss is 0.

    `batch`: tensors of the spec's batch; None counts each batch.
    """
    spec = with_metric_ops(spec)
    for name in {_LOSS, tf1.GraphKeys.GLOBAL_STEP}.intersection(spec.eval_metric_ops):
        raise ValueError(
            f"Metric with name {name!r} is not allowed, because Estimator already defines a "
            "default metric with the same name."
        )
    num_before = len(tf1.local_variables())
    weight = batch_weight(batch)
    own = {_LOSS: tf1.metrics.mean(_counted(spec.loss, weight), weight)}
    if weight is not None:
        own[SHARE_WITH_ROWS] = tf1.metrics.mean(weight)
    if spec.scaffold.local_init_op is not None:  # created before this metric's variables
        mine = [variable.initializer for variable in tf1.local_variables()[num_before:]]
        local_init_op = tf.group(spec.scaffold.local_init_op, *mine)
        scaffold = tf1.train.Scaffold(local_init_op=local_init_op, copy_from_scaffold=spec.scaffold)
        spec = spec._replace(scaffold=scaffold)
    return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **own})


def mean_of_batches(losses: Sequence[tf.Tensor], batches: Sequence[Any]) -> tf.Tensor:
    """Returns the mean loss of the batches that have rows; 0 if none has."""
    weights = [batch_weight(batch) for batch in batches]
    if None in weights:
        return tf.add_n(losses) / len(losses)
    total = tf.add_n([_counted(*pair) for pair in zip(losses, weights, strict=True)])
    return tf.math.divide_no_nan(total, tf.cast(tf.add_n(weights), total.dtype))


def _counted(loss: tf.Tensor, weight: tf.Tensor | None) -> tf.Tensor:
    """Returns the loss, or 0 for a batch without rows, whose loss may be NaN."""
    return loss if weight is None else tf.where(weight > 0, loss, tf.zeros_like(loss))
