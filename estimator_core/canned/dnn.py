"""Fully connected neural networks as Estimators."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import compose
from estimator_core.estimator import Estimator
from estimator_core.heads import Head, RegressionHead
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.logits import dnn_logit_fn_builder


@dataclasses.dataclass(frozen=True)
class Network:
    """Settings of a fully connected network: the arguments of `dnn_logit_fn_builder`."""

    hidden_units: Any
    feature_columns: Any
    activation_fn: Callable[[Any], Any] | str | None
    dropout: float | None
    batch_norm: bool

    def logit_fn(self, head: Head, **scoping: Any) -> Callable[..., tf.Tensor]:
        """Returns the logit function of the network."""
        return dnn_logit_fn_builder(
            head.logits_dimension,
            self.hidden_units,
            self.feature_columns,
            self.activation_fn,
            self.dropout,
            self.batch_norm,
            **scoping,
        )


class DNNEstimator(Estimator):
    """A neural network with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> estimator = DNNEstimator(MultiClassHead(3), hidden_units=[32, 16], feature_columns=[price])

    Args:
        head: Head that turns logits into predictions, loss and metrics.
        hidden_units: Size of each hidden layer, from the input on.
        feature_columns: Dense feature columns; wrap categorical ones with `embedding_column` or
            `indicator_column`.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        optimizer: "Adagrad" (the default), "Adam", "Ftrl", "RMSProp", "SGD", each with the learning
            rate 0.001 (SGD: 0.01); or a Keras optimizer, a `tf.compat.v1.train.Optimizer`, or a
            function that returns one.
        activation_fn: Activation function of the hidden layers; None is linear.
        dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        batch_norm: Adds batch normalization to each hidden layer if true.

    Source: `tf.estimator.DNNEstimator`.
    """

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
        dropout: float | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ):
        network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
        model_fn = compose(head, [(network.logit_fn(head), optimizer)])
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Estimator):
    """A neural network that classifies.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> classifier = DNNClassifier(hidden_units=[32, 16], feature_columns=[price], n_classes=3)
        >>> classifier.train(input_fn, steps=1000)

    Args:
        hidden_units: Size of each hidden layer, from the input on.
        feature_columns: Dense feature columns.
        model_dir: See `DNNEstimator`.
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        label_vocabulary: The labels as strings, by class id; None means integers from 0 on.
        optimizer: See `DNNEstimator`.
        activation_fn: Activation function of the hidden layers; None is linear.
        dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        batch_norm: Adds batch normalization to each hidden layer if true.

    Source: `tf.estimator.DNNClassifier`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
        dropout: float | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
    ):
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
        model_fn = compose(head, [(network.logit_fn(head), optimizer)])
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """A neural network that predicts numbers.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = DNNRegressor(hidden_units=[32, 16], feature_columns=[size])
        >>> regressor.train(input_fn, steps=1000)

    Args:
        hidden_units: Size of each hidden layer, from the input on.
        feature_columns: Dense feature columns.
        model_dir: See `DNNEstimator`.
        label_dimension: Number of values in a label.
        weight_column: Name of the feature that holds example weights, or a numeric column.
        optimizer: See `DNNEstimator`.
        activation_fn: Activation function of the hidden layers; None is linear.
        dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        config: `RunConfig`; None means a default one.
        warm_start_from: A checkpoint, a SavedModel or `WarmStartSettings` to take weights from.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        batch_norm: Adds batch normalization to each hidden layer if true.

    Source: `tf.estimator.DNNRegressor`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
        dropout: float | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
    ):
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
        model_fn = compose(head, [(network.logit_fn(head), optimizer)])
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
