"""Regressor that learns a standardized label and predicts in the label's own units.

Weights that start near zero cannot reach a label such as a price in the hundreds of thousands. With mean 0
and standard deviation 1, the same optimizer settings fit every label.
"""

from typing import Any

import estimator_core
from estimator_core.export import PredictOutput, RegressionOutput

_MOMENTS = ("label/mean", "prediction/mean")


def rescaled(regressor: Any, mean: float, stddev: float) -> Any:
    """Returns an Estimator whose labels, predictions, loss and metrics are in the label's units."""

    def model_fn(
        features: Any, labels: Any, mode: str, config: Any
    ) -> estimator_core.EstimatorSpec:
        if labels is not None:
            labels = (labels - mean) / stddev
        spec = regressor.model_fn(features, labels, mode, config)
        return _in_label_units(spec, mean, stddev)

    return estimator_core.Estimator(
        model_fn, model_dir=regressor.model_dir, config=regressor.config
    )


def _in_label_units(
    spec: estimator_core.EstimatorSpec, mean: float, stddev: float
) -> estimator_core.EstimatorSpec:
    changes: dict[str, Any] = {}
    if spec.loss is not None:
        changes["loss"] = spec.loss * stddev**2  # a mean of squares
    if spec.predictions:
        changes["predictions"] = {
            key: value * stddev + mean for key, value in spec.predictions.items()
        }
    if spec.eval_metric_ops:
        changes["eval_metric_ops"] = {
            key: tuple(_metric_in_label_units(key, part, mean, stddev) for part in parts)
            for key, parts in spec.eval_metric_ops.items()
        }
    if spec.export_outputs:
        predictions = changes["predictions"]
        (value,) = predictions.values()
        changes["export_outputs"] = {
            name: RegressionOutput(value)
            if isinstance(output, RegressionOutput)
            else PredictOutput(predictions)
            for name, output in spec.export_outputs.items()
        }
    return spec._replace(**changes)


def _metric_in_label_units(key: str, value: Any, mean: float, stddev: float) -> Any:
    return value * stddev + mean if key in _MOMENTS else value * stddev**2
