"""Wide and deep models with the defaults of `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import ModelPart
from estimator_core.canned.dnn_linear_combined import (
    MAX_LINEAR_LEARNING_RATE,
    checked_hidden_units,
    checked_parts,
)
from estimator_core.canned.linear import linear_learning_rate
from estimator_core.estimator import Estimator
from estimator_core.feature_columns.column_kinds import sorted_columns
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import (
    dnn_logit_fn_builder,
    linear_logit_fn_builder,
    with_activation_summary,
)
from estimator_core.v1 import compose
from estimator_core.v1.heads import classifier_head, regressor_head
from estimator_core.v1.optimizers import optimizer_for

_DNN_LEARNING_RATE = 0.001


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

    Args: as `estimator_core.DNNLinearCombinedEstimator`, but for these.
        linear_optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD": the optimizers
            of `tf.compat.v1.train`, each with the learning rate
            min(0.005, 1 / sqrt(number of linear columns)); or any other optimizer.
        dnn_optimizer: "Adagrad" (the default) or another one, with the learning rate 0.001.
        input_layer_partitioner: Splits the variables of the linear model and of the network's input
            layer; None spreads them over the parameter servers, in slices from 64 MiB on.

    Source: `tf.compat.v1.estimator.DNNLinearCombinedEstimator`. Ours also takes `warm_start_from`.
    """

    def __init__(
        self,
        head: Head | compose.CannedHead,
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
        partitioner = compose.input_layer_partitioner_or_default(input_layer_partitioner, config)
        parts = []
        if dnn_feature_columns:
            dnn_logit_fn = dnn_logit_fn_builder(
                head.logits_dimension,
                checked_hidden_units(dnn_hidden_units),
                dnn_feature_columns,
                activation_fn=dnn_activation_fn,
                dropout=dnn_dropout,
                batch_norm=batch_norm,
                scope=None,
                input_layer_partitioner=partitioner,
            )
            parts.append(
                ModelPart(
                    compose.in_scope(dnn_logit_fn, "dnn", compose.hidden_layer_partitioner(config)),
                    optimizer_for(dnn_optimizer, _DNN_LEARNING_RATE),
                )
            )
        if linear_feature_columns:
            columns = sorted_columns(linear_feature_columns)
            linear_logit_fn = with_activation_summary(
                linear_logit_fn_builder(
                    head.logits_dimension, columns, linear_sparse_combiner, scope=None
                ),
                "linear",
            )
            learning_rate = linear_learning_rate(columns, MAX_LINEAR_LEARNING_RATE)
            parts.append(
                ModelPart(
                    compose.in_scope(linear_logit_fn, "linear", partitioner),
                    optimizer_for(linear_optimizer, learning_rate),
                )
            )
        super().__init__(
            compose.compose(head, checked_parts(parts)),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """A linear model plus a neural network that classify.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> kind = tf.feature_column.categorical_column_with_hash_bucket("kind", 100)
        >>> classifier = DNNLinearCombinedClassifier(
        ...     linear_feature_columns=[kind], dnn_feature_columns=[price], dnn_hidden_units=[32, 16]
        ... )

    Args: as `estimator_core.DNNLinearCombinedClassifier`, but for these.
        linear_optimizer: As in `DNNLinearCombinedEstimator`.
        dnn_optimizer: As in `DNNLinearCombinedEstimator`.
        input_layer_partitioner: As in `DNNLinearCombinedEstimator`.
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
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir=model_dir,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=dnn_hidden_units,
            dnn_activation_fn=dnn_activation_fn,
            dnn_dropout=dnn_dropout,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
            batch_norm=batch_norm,
            linear_sparse_combiner=linear_sparse_combiner,
            warm_start_from=warm_start_from,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """A linear model plus a neural network that predict numbers.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = DNNLinearCombinedRegressor(
        ...     linear_feature_columns=[size], dnn_feature_columns=[size], dnn_hidden_units=[32, 16]
        ... )

    Args: as `estimator_core.DNNLinearCombinedRegressor`, but for these.
        linear_optimizer: As in `DNNLinearCombinedEstimator`.
        dnn_optimizer: As in `DNNLinearCombinedEstimator`.
        input_layer_partitioner: As in `DNNLinearCombinedEstimator`.
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
        super().__init__(
            regressor_head(label_dimension, weight_column, loss_reduction),
            model_dir=model_dir,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=dnn_hidden_units,
            dnn_activation_fn=dnn_activation_fn,
            dnn_dropout=dnn_dropout,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
            batch_norm=batch_norm,
            linear_sparse_combiner=linear_sparse_combiner,
            warm_start_from=warm_start_from,
        )
