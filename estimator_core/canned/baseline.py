"""Models that ignore all features, as Estimators: a baseline for other models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core.canned.compose import compose
from estimator_core.estimator import Estimator
from estimator_core.heads import Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import baseline_logit_fn_builder
from estimator_core.spec.types import ModelFn

LEARNING_RATE = 0.3


def baseline_model_fn(head: Head, optimizer: Any) -> ModelFn:
    """Returns the `model_fn` whose logits are only a bias, trained by `optimizer`."""
    logit_fn = baseline_logit_fn_builder(head.logits_dimension)
    return compose(head, [(logit_fn, optimizer, LEARNING_RATE)])


class BaselineEstimator(Estimator):
    """A model that predicts the same for all examples, with a head of your choice.

    Example:
        >>> estimator = BaselineEstimator(MultiLabelHead(n_classes=3))

    Args:
        head: Head that turns logits into predictions, loss and metrics.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD", each with the learning
            rate 0.3; or a Keras optimizer, a `tf.compat.v1.train.Optimizer`, or a function that
            returns one.
        config: `RunConfig`; None means a default one.

    Source: `tf.estimator.BaselineEstimator`.
    """

    def __init__(self, head: Head, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None):
        super().__init__(baseline_model_fn(head, optimizer), model_dir, config)


class BaselineClassifier(Estimator):
    """Predicts the share of each class among the labels, for all examples.

    Example:
        >>> classifier = BaselineClassifier(n_classes=3)
        >>> classifier.train(input_fn, steps=1000)

    Args:
        model_dir: See `BaselineEstimator`.
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        optimizer: See `BaselineEstimator`.
        config: `RunConfig`; None means a default one.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".

    Source: `tf.estimator.BaselineClassifier`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
    ):
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(baseline_model_fn(head, optimizer), model_dir, config)


class BaselineRegressor(Estimator):
    """Predicts the mean of the labels, for all examples.

    Example:
        >>> regressor = BaselineRegressor()
        >>> regressor.train(input_fn, steps=1000)

    Args:
        model_dir: See `BaselineEstimator`.
        label_dimension: Number of values in a label.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        optimizer: See `BaselineEstimator`.
        config: `RunConfig`; None means a default one.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".

    Source: `tf.estimator.BaselineRegressor`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
    ):
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(baseline_model_fn(head, optimizer), model_dir, config)
