"""The model_fn of an Estimator that was not written for a TPU."""

from __future__ import annotations

from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.spec.estimator_spec import EstimatorSpec


class ConvertedModelFn:
    """Calls the model_fn of another Estimator. `TPUEstimator` averages its gradients over the shards."""

    def __init__(self, estimator: Estimator):
        self._estimator = estimator

    def __call__(
        self, features: Any, labels: Any, mode: str, config: Any, params: Any
    ) -> EstimatorSpec:
        """Returns the spec of the model, built with the other Estimator's own `params`."""
        del params
        return self._estimator.model_fn(features, labels, mode, config)
