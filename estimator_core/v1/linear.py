"""Linear models with the defaults of `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.linear import LinearModel
from estimator_core.estimator import Estimator
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.spec.types import ModelFn
from estimator_core.v1.heads import classifier_head, regressor_head
from estimator_core.v1.optimizers import optimizer_for
from estimator_core.v1.scopes import (
    in_name_scope,
    input_layer_partitioner_or_default,
    model_in_scope,
)

_SCOPE = "linear"


def linear_model_fn(
    head: Head, linear: LinearModel, optimizer: Any, partitioner: Any, config: Any
) -> ModelFn:
    """Returns the model_fn of a `LinearEstimator`; see its arguments."""
    part = ModelPart(
        in_name_scope(linear.logit_fn(head, scope=None), _SCOPE),
        optimizer_for(optimizer, linear.learning_rate()),
    )
    training = linear.training(head, optimizer, summary_scope=_SCOPE)
    partitioner = input_layer_partitioner_or_default(partitioner, config)
    return model_in_scope(compose(head, [part], training), _SCOPE, partitioner)


class LinearEstimator(Estimator):
    """A linear model with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> estimator = LinearEstimator(RegressionHead(label_dimension=2), feature_columns=[price])

    Args: same as `estimator_core.LinearEstimator`, except:
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD": the optimizers of
            `tf.compat.v1.train`, each with the learning rate min(0.2, 1 / sqrt(number of columns));
            any other optimizer; or `experimental.LinearSDCA`, for unpartitioned variables.
        partitioner: Partitioner of the variables of the model; None spreads them over the parameter
            servers, in slices from 64 MiB on.

    Source: `tf.compat.v1.estimator.LinearEstimator`. Ours takes the optimizers of
    `tf.compat.v1.train` with every head; 2.15 rejects all optimizers with its heads.
    """

    def __init__(
        self,
        head: Head,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Callable[..., Any] | None = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ):
        linear = LinearModel(feature_columns, sparse_combiner)
        model_fn = linear_model_fn(head, linear, optimizer, partitioner, config)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(Estimator):
    """A linear model that classifies: logistic regression.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> classifier = LinearClassifier(feature_columns=[price])
        >>> classifier.train(input_fn, steps=1000)

    Args: same as `estimator_core.LinearClassifier`, except:
        optimizer: See `LinearEstimator`.
        partitioner: See `LinearEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.LinearClassifier`.
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
        partitioner: Callable[..., Any] | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        sparse_combiner: str = "sum",
    ):
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        linear = LinearModel(feature_columns, sparse_combiner)
        model_fn = linear_model_fn(head, linear, optimizer, partitioner, config)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """A linear model that predicts numbers: least squares.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = LinearRegressor(feature_columns=[size])
        >>> regressor.train(input_fn, steps=1000)

    Args: same as `estimator_core.LinearRegressor`, except:
        optimizer: See `LinearEstimator`.
        partitioner: See `LinearEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.LinearRegressor`.
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Callable[..., Any] | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        sparse_combiner: str = "sum",
    ):
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        linear = LinearModel(feature_columns, sparse_combiner)
        model_fn = linear_model_fn(head, linear, optimizer, partitioner, config)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
