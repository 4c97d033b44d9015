"""Linear models as Estimators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from estimator_core.canned.compose import compose
from estimator_core.estimator import Estimator
from estimator_core.feature_columns.column_kinds import sorted_columns
from estimator_core.heads import Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import linear_logit_fn_builder
from estimator_core.sdca import LinearSDCA
from estimator_core.sdca.model_fn import sdca_model_fn


def linear_learning_rate(columns: Sequence[Any], maximum: float = 0.2) -> float:
    """Returns the learning rate of an optimizer given by name: the more columns, the lower."""
    return min(maximum, 1.0 / math.sqrt(len(columns)))


class LinearEstimator(Estimator):
    """A linear model with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> estimator = LinearEstimator(RegressionHead(label_dimension=2), feature_columns=[price])

    Args:
        head: What turns logits into predictions, loss and metrics.
        feature_columns: Categorical and dense feature columns.
        model_dir: Where checkpoints and summaries go; None means the config's, or a new temporary
            directory.
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD", each with the learning
            rate min(0.2, 1 / sqrt(number of columns)); or a Keras optimizer, a
            `tf.compat.v1.train.Optimizer`, or a function that returns one; or
            `experimental.LinearSDCA`.
        config: `RunConfig`; None means a default one.
        sparse_combiner: How the weights of several values in one categorical column combine: "sum",
            "mean" or "sqrtn".
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.

    Source: `tf.estimator.LinearEstimator`. Where we differ: the weights of
    `embedding_column(trainable=False)` stay as they are; 2.15 trains them.
    """

    def __init__(
        self,
        head: Head,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ):
        columns = sorted_columns(feature_columns)
        if isinstance(optimizer, LinearSDCA):
            model_fn = sdca_model_fn(head, columns, optimizer, sparse_combiner)
        else:
            logit_fn = linear_logit_fn_builder(head.logits_dimension, columns, sparse_combiner)
            model_fn = compose(head, [(logit_fn, optimizer, linear_learning_rate(columns))])
        super().__init__(
            model_fn,
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )


class LinearClassifier(LinearEstimator):
    """A linear model that classifies: logistic regression.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> classifier = LinearClassifier(feature_columns=[price])
        >>> classifier.train(input_fn, steps=1000)

    Args:
        feature_columns: Categorical and dense feature columns.
        model_dir: As in `LinearEstimator`.
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        optimizer: As in `LinearEstimator`.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        sparse_combiner: As in `LinearEstimator`.

    Source: `tf.estimator.LinearClassifier`.
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        sparse_combiner: str = "sum",
    ):
        super().__init__(
            binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            feature_columns,
            model_dir=model_dir,
            optimizer=optimizer,
            config=config,
            sparse_combiner=sparse_combiner,
            warm_start_from=warm_start_from,
        )


class LinearRegressor(LinearEstimator):
    """A linear model that predicts numbers: least squares.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = LinearRegressor(feature_columns=[size])
        >>> regressor.train(input_fn, steps=1000)

    Args:
        feature_columns: Categorical and dense feature columns.
        model_dir: As in `LinearEstimator`.
        label_dimension: How many numbers a label has.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        optimizer: As in `LinearEstimator`.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        sparse_combiner: As in `LinearEstimator`.

    Source: `tf.estimator.LinearRegressor`.
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        sparse_combiner: str = "sum",
    ):
        super().__init__(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            feature_columns,
            model_dir=model_dir,
            optimizer=optimizer,
            config=config,
            sparse_combiner=sparse_combiner,
            warm_start_from=warm_start_from,
        )
