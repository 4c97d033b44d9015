"""add_metrics: adds evaluation metrics to an existing Estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.spec.calling import arg_names
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys

_METRIC_FN_ARGS = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., dict[str, Any]]) -> Estimator:
    """Returns an Estimator like `estimator` that evaluates the metrics of `metric_fn` as well.

    Example:
        >>> def metric_fn(labels, predictions):
        ...     return {"auc": tf.compat.v1.metrics.auc(labels, predictions["logistic"])}
        >>> estimator = add_metrics(estimator, metric_fn)  # doctest: +SKIP

    Args:
        estimator: Estimator to extend; it is not changed, and both share the model_dir.
        metric_fn: Function of any of `features`, `labels`, `predictions` and `config` that returns
            metrics by name, in the form of `EstimatorSpec`'s eval_metric_ops. They replace the
            Estimator's metrics of the same names.

    Raises:
        ValueError: `metric_fn` takes other arguments.

    Source: `tf.estimator.add_metrics`.
    """
    names = arg_names(metric_fn)
    unknown = sorted(set(names) - set(_METRIC_FN_ARGS))
    if unknown:
        raise ValueError(f"metric_fn may take the arguments {_METRIC_FN_ARGS}. Received: {unknown}")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        values = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        added = metric_fn(**{name: values[name] for name in names}) or {}
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **added})

    return Estimator(
        model_fn, estimator.model_dir, estimator.config, warm_start_from=estimator.warm_start_settings
    )
