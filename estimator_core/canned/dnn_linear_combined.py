"""Wide and deep: a linear model and a neural network trained jointly, as Estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.dnn import Network
from estimator_core.canned.linear import LinearModel
from estimator_core.estimator import Estimator
from estimator_core.heads import Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import with_activation_summary
from estimator_core.spec.types import ModelFn


def check_parts(network: Network, linear: LinearModel) -> None:
    """Checks that there is a network, a linear model, or both."""
    if not (network.feature_columns or linear.feature_columns):
        raise ValueError(
            "Either linear_feature_columns or dnn_feature_columns must be defined. Received: neither"
        )
    if network.feature_columns and not network.hidden_units:
        raise ValueError(
            "dnn_hidden_units must be defined when dnn_feature_columns is specified. "
            f"Received: dnn_hidden_units={network.hidden_units!r}"
        )


def _model_fn(
    head: Head, network: Network, dnn_optimizer: Any, linear: LinearModel, linear_optimizer: Any
) -> ModelFn:
    check_parts(network, linear)
    parts = []
    if network.feature_columns:
        parts.append(ModelPart(network.logit_fn(head), dnn_optimizer))
    if linear.feature_columns:
        logit_fn = with_activation_summary(linear.logit_fn(head), "linear")
        parts.append(ModelPart(logit_fn, linear_optimizer, linear.learning_rate_beside_network))
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

    Args:
        head: Head that turns logits into predictions, loss and metrics.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        linear_feature_columns: Columns of the linear model; None or empty leaves it out.
        linear_optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD", each with the
            learning rate min(0.005, 1 / sqrt(number of linear columns)); or a Keras optimizer, a
            `tf.compat.v1.train.Optimizer`, or a function that returns one.
        dnn_feature_columns: Dense columns of the network; None or empty leaves it out.
        dnn_optimizer: Optimizer like `linear_optimizer`; "Adagrad" is the default, with the learning rate
            0.001 (SGD: 0.01).
        dnn_hidden_units: Size of each hidden layer, from the input on.
        dnn_activation_fn: Activation function of the hidden layers; None is linear.
        dnn_dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        config: `RunConfig`; None means a default one.
        batch_norm: Adds batch normalization to each hidden layer if true.
        linear_sparse_combiner: Reduction of the weights of several values in one categorical column:
            "sum", "mean" or "sqrtn".
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.

    Raises:
        ValueError: Neither kind of columns is given, or DNN columns without hidden units.

    Source: `tf.estimator.DNNLinearCombinedEstimator`, and Cheng et al. 2016, Wide & Deep Learning for
    Recommender Systems. Ours also takes `warm_start_from`.
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
        config: Any = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ):
        network = Network(dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, batch_norm)
        linear = LinearModel(linear_feature_columns, linear_sparse_combiner)
        model_fn = _model_fn(head, network, dnn_optimizer, linear, linear_optimizer)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(Estimator):
    """A linear model plus a neural network that classify.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> kind = tf.feature_column.categorical_column_with_hash_bucket("kind", 100)
        >>> classifier = DNNLinearCombinedClassifier(
        ...     linear_feature_columns=[kind],
        ...     dnn_feature_columns=[price, tf.feature_column.embedding_column(kind, 8)],
        ...     dnn_hidden_units=[32, 16],
        ... )
        >>> classifier.train(input_fn, steps=1000)

    Args: same as `DNNLinearCombinedEstimator`, except:
        linear_feature_columns: Columns of the linear model; None or empty leaves it out.
        dnn_feature_columns: Dense columns of the network; None or empty leaves it out.
        dnn_hidden_units: Size of each hidden layer, from the input on.
        dnn_activation_fn: Activation function of the hidden layers; None is linear.
        dnn_dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        batch_norm: Adds batch normalization to each hidden layer if true.

    Source: `tf.estimator.DNNLinearCombinedClassifier`.
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
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        network = Network(dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, batch_norm)
        linear = LinearModel(linear_feature_columns, linear_sparse_combiner)
        model_fn = _model_fn(head, network, dnn_optimizer, linear, linear_optimizer)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    """A linear model plus a neural network that predict numbers.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = DNNLinearCombinedRegressor(
        ...     linear_feature_columns=[size], dnn_feature_columns=[size], dnn_hidden_units=[32, 16]
        ... )
        >>> regressor.train(input_fn, steps=1000)

    Args: same as `DNNLinearCombinedEstimator`, except:
        linear_feature_columns: Columns of the linear model; None or empty leaves it out.
        dnn_feature_columns: Dense columns of the network; None or empty leaves it out.
        dnn_hidden_units: Size of each hidden layer, from the input on.
        dnn_activation_fn: Activation function of the hidden layers; None is linear.
        dnn_dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        label_dimension: Number of values in a label.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        batch_norm: Adds batch normalization to each hidden layer if true.

    Source: `tf.estimator.DNNLinearCombinedRegressor`.
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
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        network = Network(dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, batch_norm)
        linear = LinearModel(linear_feature_columns, linear_sparse_combiner)
        model_fn = _model_fn(head, network, dnn_optimizer, linear, linear_optimizer)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
