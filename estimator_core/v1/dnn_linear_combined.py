"""Wide and deep models with the defaults of `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.dnn import Network
from estimator_core.canned.dnn_linear_combined import MAX_LINEAR_LEARNING_RATE, check_parts
from estimator_core.canned.linear import LinearModel
from estimator_core.estimator import Estimator
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import with_activation_summary
from estimator_core.spec.types import ModelFn
from estimator_core.v1.heads import classifier_head, regressor_head
from estimator_core.v1.optimizers import optimizer_for
from estimator_core.v1.scopes import (
    hidden_layer_partitioner,
    in_scope,
    input_layer_partitioner_or_default,
)

_DNN_LEARNING_RATE = 0.001


def _model_fn(
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
        parts.append(ModelPart(logit_fn, optimizer_for(dnn_optimizer, _DNN_LEARNING_RATE)))
    if linear.feature_columns:
        logit_fn = with_activation_summary(linear.logit_fn(head, scope=None), "linear")
        learning_rate = linear.learning_rate(MAX_LINEAR_LEARNING_RATE)
        optimizer = optimizer_for(linear_optimizer, learning_rate)
        parts.append(ModelPart(in_scope(logit_fn, "linear", partitioner), optimizer))
    return compose(head, parts)


class DNNLinearCombinedEstimator(Estimator):
    """A linear model plus a neural network, with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> kind = tf.feature_column.categorical_column_with_hash_bucket("kind", 100)
        >>> estimator = DNNLinearCombinedEstimator(
        ...     BinaryClassHead(),
        ...     linear_feature_columns=[kind],
        ...     dnn_feature_columns=[price, tf.feature_column.embedding_column(kind, 8)],
        ...     dnn_hidden_units=[32, 16],
        ... )

    Args: same as `estimator_core.DNNLinearCombinedEstimator`, except:
        linear_optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD": the optimizers
            of `tf.compat.v1.train`, each with the learning rate
            min(0.005, 1 / sqrt(number of linear columns)); or any other optimizer.
        dnn_optimizer: "Adagrad" (the default) or another one, with the learning rate 0.001.
        input_layer_partitioner: Partitioner of the variables of the linear model and of the network's input
            layer; None spreads them over the parameter servers, in slices from 64 MiB on.

    Source: `tf.compat.v1.estimator.DNNLinearCombinedEstimator`. Ours also takes `warm_start_from`.
    """

    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Callable[..., Any] | None = None,
        config: Any = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ):
        network = Network(
            dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, batch_norm
        )
        linear = LinearModel(linear_feature_columns, linear_sparse_combiner)
        model_fn = _model_fn(
            head, network, dnn_optimizer, linear, linear_optimizer, input_layer_partitioner, config
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(Estimator):
    """A linear model plus a neural network that classify.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> kind = tf.feature_column.categorical_column_with_hash_bucket("kind", 100)
        >>> classifier = DNNLinearCombinedClassifier(
        ...     linear_feature_columns=[kind], dnn_feature_columns=[price], dnn_hidden_units=[32, 16]
        ... )

    Args: same as `estimator_core.DNNLinearCombinedClassifier`, except:
        linear_optimizer: See `DNNLinearCombinedEstimator`.
        dnn_optimizer: See `DNNLinearCombinedEstimator`.
        input_layer_partitioner: See `DNNLinearCombinedEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.DNNLinearCombinedClassifier`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Callable[..., Any] | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        network = Network(
            dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, batch_norm
        )
        linear = LinearModel(linear_feature_columns, linear_sparse_combiner)
        model_fn = _model_fn(
            head, network, dnn_optimizer, linear, linear_optimizer, input_layer_partitioner, config
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    """A linear model plus a neural network that predict numbers.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = DNNLinearCombinedRegressor(
        ...     linear_feature_columns=[size], dnn_feature_columns=[size], dnn_hidden_units=[32, 16]
        ... )

    Args: same as `estimator_core.DNNLinearCombinedRegressor`, except:
        linear_optimizer: See `DNNLinearCombinedEstimator`.
        dnn_optimizer: See `DNNLinearCombinedEstimator`.
        input_layer_partitioner: See `DNNLinearCombinedEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.DNNLinearCombinedRegressor`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Callable[..., Any] | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        network = Network(
            dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, batch_norm
        )
        linear = LinearModel(linear_feature_columns, linear_sparse_combiner)
        model_fn = _model_fn(
            head, network, dnn_optimizer, linear, linear_optimizer, input_layer_partitioner, config
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
