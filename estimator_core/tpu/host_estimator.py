"""A TPUEstimator's model on this machine, in one copy: for predictors and exports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.estimator import Estimator
from estimator_core.execution.shards.shards import find_replica_ids, replace
from estimator_core.graphs.build import Model
from estimator_core.keras_in_graph.calling import call_model_fn
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import ModelFn
from estimator_core.tpu import serving_graph


class HostEstimator(Estimator):
    """An Estimator whose exports may have a graph for TPUs in addition to that for CPUs and GPUs."""

    def __init__(
        self,
        model_fn: ModelFn,
        model_fn_on_tpu: ModelFn | None,
        config: RunConfig,
        params: Mapping[str, Any] | None,
    ):
        super().__init__(model_fn, config=config, params=params)
        self._model_fn_on_tpu = model_fn_on_tpu

    def _graphs_to_export(self, mode: str) -> Iterator[tuple[Model, Sequence[str]]]:
        yield from super()._graphs_to_export(mode)
        if self._model_fn_on_tpu is None:
            return
        if mode == ModeKeys.PREDICT:
            model = dataclasses.replace(self._model_now(), call_model_fn=self._call_model_fn_on_tpu)
            yield model, serving_graph.TAGS
        else:
            logger.warning("Mode %r is exported only for CPUs: export_to_tpu is for PREDICT.", mode)

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        spec = super()._call_model_fn(features, labels, mode, config)
        replica_ids = find_replica_ids(tf1.get_default_graph().get_operations())
        if replica_ids:  # which a CPU can't compute; this is the only copy
            replace(replica_ids, tf.constant(0))
        return spec

    def _call_model_fn_on_tpu(
        self, features: Any, labels: Any, mode: str, config: RunConfig
    ) -> EstimatorSpec:
        assert self._model_fn_on_tpu is not None
        return call_model_fn(self._model_fn_on_tpu, features, labels, mode, self.params, config)


class ConvertedModelFn:
    """Calls the model_fn of another Estimator. `TPUEstimator` averages its gradients over the shards."""

    def __init__(self, estimator: Estimator):
        self._estimator = estimator

    def __call__(self, features: Any, labels: Any, mode: str, config: Any, params: Any) -> EstimatorSpec:
        """Returns the spec of the model, built with the other Estimator's own `params`."""
        del params
        return self._estimator.model_fn(features, labels, mode, config)
