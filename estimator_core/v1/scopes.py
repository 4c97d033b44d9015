"""Scopes for the names of a model's parts in `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.types import ModelFn

_INPUT_LAYER_MIN_SLICE_BYTES = 64 << 20


def model_in_scope(
    model_fn: ModelFn, scope: str, partitioner: Callable[..., Any] | None
) -> ModelFn:
    """Returns `model_fn`, building its variables below a scope and partitioned.

    Optimizer slots are made there as well, so that their names in a checkpoint end in "part_0/Ftrl" or
    "t_0/Adagrad". Names of operations and tags of summaries don't change.

    `model_fn`: function `model_fn(features, labels, mode)`.
    `partitioner`: partitioner of the variables; None leaves them whole.
    """

    def scoped_model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
        with tf1.variable_scope(scope, partitioner=partitioner, auxiliary_name_scope=False):
            return model_fn(features, labels, mode, config)

    return scoped_model_fn


def in_scope(
    logit_fn: Callable[..., Any], scope: str, partitioner: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Returns `logit_fn`, building its variables below a scope and partitioned.

    `logit_fn`: function `logit_fn(features, mode)`, which makes its variables in the current scope.
    `partitioner`: partitioner of the variables; None takes the current scope's.
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
    """Returns the partitioner of a network's layers: over parameter servers, in slices from 256 KiB on."""
    return tf1.min_max_variable_partitioner(max_partitions=_num_ps_replicas(config))


def input_layer_partitioner_or_default(partitioner: Any, config: Any) -> Callable[..., Any]:
    """Returns the user's partitioner, or one over parameter servers, in slices from 64 MiB on."""
    return partitioner or tf1.min_max_variable_partitioner(
        max_partitions=_num_ps_replicas(config), min_slice_size=_INPUT_LAYER_MIN_SLICE_BYTES
    )


def _num_ps_replicas(config: Any) -> int:
    # Estimator refuses any other type later
    return config.num_ps_replicas if isinstance(config, RunConfig) else 0
