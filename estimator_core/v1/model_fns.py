"""The model_fns of `tf.compat.v1.estimator`: scopes for the names of a model's parts, optimizers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.dnn import Network
from estimator_core.canned.dnn_linear_combined import check_parts
from estimator_core.canned.linear import LEARNING_RATE, LinearModel
from estimator_core.heads import Head
from estimator_core.logits import with_activation_summary
from estimator_core.optimizers.named import optimizer_named
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.types import ModelFn

_DNN_LEARNING_RATE = 0.05
_COMBINED_DNN_LEARNING_RATE = 0.001
_INPUT_LAYER_MIN_SLICE_BYTES = 64 << 20
_BY_NAME: dict[str, Callable[..., Any]] = {
    "Adagrad": tf1.train.AdagradOptimizer,
    "Adam": tf1.train.AdamOptimizer,
    "Ftrl": tf1.train.FtrlOptimizer,
    "RMSProp": tf1.train.RMSPropOptimizer,
    "SGD": tf1.train.GradientDescentOptimizer,
}


def dnn_model_fn(
    head: Head,
    network: Network,
    optimizer: Any,
    input_layer_partitioner: Any,
    config: Any,
    is_partitioned: bool = True,
) -> ModelFn:
    """Returns the model_fn of a `DNNEstimator`; see its arguments."""
    if not is_partitioned:
        partitioner = hidden_partitioner = None
    else:
        partitioner = input_layer_partitioner_or_default(input_layer_partitioner, config)
        hidden_partitioner = hidden_layer_partitioner(config)
    logit_fn = network.logit_fn(head, scope=None, input_layer_partitioner=partitioner)
    part = ModelPart(in_name_scope(logit_fn, "dnn"), v1_optimizer(optimizer, _DNN_LEARNING_RATE))
    return model_in_scope(compose(head, [part]), "dnn", hidden_partitioner)


def linear_model_fn(
    head: Head, linear: LinearModel, optimizer: Any, partitioner: Any, config: Any
) -> ModelFn:
    """Returns the model_fn of a `LinearEstimator`; see its arguments."""
    part = ModelPart(
        in_name_scope(linear.logit_fn(head, scope=None), "linear"),
        v1_optimizer(optimizer, LEARNING_RATE),
    )
    training = linear.training(head, optimizer, summary_scope="linear")
    partitioner = input_layer_partitioner_or_default(partitioner, config)
    return model_in_scope(compose(head, [part], training), "linear", partitioner)


def dnn_linear_combined_model_fn(
    head: Head,
    network: Network,
    dnn_optimizer: Any,
    linear: LinearModel,
    linear_optimizer: Any,
    input_layer_partitioner: Any,
    config: Any,
) -> ModelFn:
    check_parts(network, linear)
    partitioner = input_layer_partitioner_or_default(input_layer_partitioner, config)
    parts = []
    if network.feature_columns:
        logit_fn = network.logit_fn(head, scope=None, input_layer_partitioner=partitioner)
        logit_fn = in_scope(logit_fn, "dnn", hidden_layer_partitioner(config))
        parts.append(ModelPart(logit_fn, v1_optimizer(dnn_optimizer, _COMBINED_DNN_LEARNING_RATE)))
    if linear.feature_columns:
        logit_fn = with_activation_summary(linear.logit_fn(head, scope=None), "linear")
        optimizer = v1_optimizer(linear_optimizer, linear.learning_rate_beside_network)
        parts.append(ModelPart(in_scope(logit_fn, "linear", partitioner), optimizer))
    return compose(head, parts)


def v1_optimizer(optimizer: Any, learning_rate: float) -> Any:
    """Returns the optimizer in a form that `estimator_core.optimizers.minimize.get_optimizer` takes.

    `optimizer`: A name, for the optimizer of `tf.compat.v1.train`, or any optimizer that `get_optimizer`
    takes.
    """
    if not isinstance(optimizer, str):
        return optimizer
    make = optimizer_named(optimizer, _BY_NAME)
    return lambda: make(learning_rate=learning_rate)


def model_in_scope(model_fn: ModelFn, scope: str, partitioner: Callable[..., Any] | None) -> ModelFn:
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
