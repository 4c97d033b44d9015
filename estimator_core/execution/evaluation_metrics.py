"""From what a model_fn evaluates to the metrics of `Estimator.evaluate`, as ops."""

from __future__ import annotations

import tensorflow as tf

from estimator_core import tf1
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.metric_fn import MetricFn

_LOSS = "loss"


def with_metric_ops(spec: EstimatorSpec) -> EstimatorSpec:
    """Returns the spec whose metrics are `(value, update_op)` pairs: their function, if any, is called.

    Each Execution calls this, or `with_evaluation_metrics`, where all that one update of the metrics
    takes is at hand.
    """
    if isinstance(spec.eval_metric_ops, MetricFn):
        return spec._replace(eval_metric_ops=spec.eval_metric_ops())
    return spec


def with_evaluation_metrics(spec: EstimatorSpec) -> EstimatorSpec:
    """Returns the spec with metric ops, and with the metric "loss": the mean of the batches' losses.

    Raises:
        ValueError: A metric of the user's has a name that the Estimator needs.
    """
    spec = with_metric_ops(spec)
    for name in {_LOSS, tf1.GraphKeys.GLOBAL_STEP}.intersection(spec.eval_metric_ops):
        raise ValueError(
            f"Metric with name {name!r} is not allowed, because Estimator already defines a "
            "default metric with the same name."
        )
    before = len(tf1.local_variables())
    loss = tf1.metrics.mean(spec.loss)
    if spec.scaffold.local_init_op is not None:  # made before there was this metric
        mine = [variable.initializer for variable in tf1.local_variables()[before:]]
        local_init_op = tf.group(spec.scaffold.local_init_op, *mine)
        scaffold = tf1.train.Scaffold(local_init_op=local_init_op, copy_from_scaffold=spec.scaffold)
        spec = spec._replace(scaffold=scaffold)
    return spec._replace(eval_metric_ops={**spec.eval_metric_ops, _LOSS: loss})
