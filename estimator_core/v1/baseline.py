"""Models that ignore all features, with the defaults of `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core.canned.baseline import LEARNING_RATE, baseline_model_fn
from estimator_core.estimator import Estimator
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.v1.heads import classifier_head, regressor_head
from estimator_core.v1.optimizers import optimizer_for


class BaselineEstimator(Estimator):
    """A model that predicts the same for all examples, with a head of your choice.

    Example:
        >>> estimator = BaselineEstimator(MultiLabelHead(n_classes=3))

    Args: same as `estimator_core.BaselineEstimator`, except:
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD": the optimizers of
            `tf.compat.v1.train`, each with the learning rate 0.3; or any other optimizer.

    Source: `tf.compat.v1.estimator.BaselineEstimator`.
    """

    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
    ):
        model_fn = baseline_model_fn(head, optimizer_for(optimizer, LEARNING_RATE))
        super().__init__(model_fn, model_dir, config)


class BaselineClassifier(Estimator):
    """Predicts the share of each class among the labels, for all examples.

    Example:
        >>> classifier = BaselineClassifier(n_classes=3)
        >>> classifier.train(input_fn, steps=1000)

    Args: same as `estimator_core.BaselineClassifier`, except:
        optimizer: See `BaselineEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.BaselineClassifier`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
    ):
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        model_fn = baseline_model_fn(head, optimizer_for(optimizer, LEARNING_RATE))
        super().__init__(model_fn, model_dir, config)


class BaselineRegressor(Estimator):
    """Predicts the mean of the labels, for all examples.

    Example:
        >>> regressor = BaselineRegressor()
        >>> regressor.train(input_fn, steps=1000)

    Args: same as `estimator_core.BaselineRegressor`, except:
        optimizer: See `BaselineEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.BaselineRegressor`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
    ):
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        model_fn = baseline_model_fn(head, optimizer_for(optimizer, LEARNING_RATE))
        super().__init__(model_fn, model_dir, config)
