"""Linear models as Estimators."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import MinimizeParts, ModelPart, Training, compose
from estimator_core.estimator import Estimator
from estimator_core.feature_columns.column_kinds import sorted_columns
from estimator_core.heads import Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import linear_logit_fn_builder
from estimator_core.sdca import LinearSDCA
from estimator_core.sdca.training import SdcaTraining
from estimator_core.spec.types import ModelFn

LEARNING_RATE = 0.2  # of an optimizer given by name, however many columns there are


@dataclasses.dataclass(frozen=True)
class LinearModel:
    """Settings of a linear model: its columns, and the reduction of several weights of one column."""

    feature_columns: Any
    sparse_combiner: str

    @functools.cached_property
    def columns(self) -> list[Any]:
        return sorted_columns(self.feature_columns)

    @property
    def learning_rate_beside_network(self) -> float:
        """The learning rate of an optimizer given by name, in a combined model."""
        return min(0.005, 1.0 / math.sqrt(len(self.columns)))

    def logit_fn(self, head: Head, scope: str | None = "linear") -> Callable[..., tf.Tensor]:
        """Returns the logit function of the model.

        `scope`: variable scope of the model; None builds it in the current one.
        """
        return linear_logit_fn_builder(head.logits_dimension, self.columns, self.sparse_combiner, scope=scope)

    def training(self, head: Head, optimizer: Any, **scopes: str) -> Training:
        """Returns the `Training` of the model."""
        if isinstance(optimizer, LinearSDCA):
            return SdcaTraining(optimizer, head, self.columns, self.sparse_combiner, **scopes)
        return MinimizeParts()


def linear_model_fn(head: Head, feature_columns: Any, optimizer: Any, sparse_combiner: str) -> ModelFn:
    """Returns the model_fn of a `LinearEstimator`; see its arguments."""
    linear = LinearModel(feature_columns, sparse_combiner)
    training = linear.training(head, optimizer, model_scope="linear")
    part = ModelPart(linear.logit_fn(head), optimizer, LEARNING_RATE)
    return compose(head, [part], training)


class LinearEstimator(Estimator):
    """A linear model with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> estimator = LinearEstimator(RegressionHead(label_dimension=2), feature_columns=[price])

    Args:
        head: Head that turns logits into predictions, loss and metrics.
        feature_columns: Categorical and dense feature columns.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD", each with the learning
            rate 0.2; or a Keras optimizer, a `tf.compat.v1.train.Optimizer`, or a function that returns
            one; or `experimental.LinearSDCA`.
        config: `RunConfig`; None means a default one.
        sparse_combiner: Reduction of the weights of several values in one categorical column: "sum",
            "mean" or "sqrtn".
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.

    Source: `tf.estimator.LinearEstimator`. Difference: the weights of
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
        model_fn = linear_model_fn(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(Estimator):
    """A linear model that classifies: logistic regression.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> classifier = LinearClassifier(feature_columns=[price])
        >>> classifier.train(input_fn, steps=1000)

    Args:
        feature_columns: Categorical and dense feature columns.
        model_dir: See `LinearEstimator`.
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        optimizer: See `LinearEstimator`.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        sparse_combiner: See `LinearEstimator`.

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
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        model_fn = linear_model_fn(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """A linear model that predicts numbers: least squares.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = LinearRegressor(feature_columns=[size])
        >>> regressor.train(input_fn, steps=1000)

    Args:
        feature_columns: Categorical and dense feature columns.
        model_dir: See `LinearEstimator`.
        label_dimension: Number of values in a label.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        optimizer: See `LinearEstimator`.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        sparse_combiner: See `LinearEstimator`.

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
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        model_fn = linear_model_fn(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
