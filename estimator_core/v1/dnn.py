"""Fully connected neural networks with the defaults of `tf.compat.v1.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.canned.compose import ModelPart, compose
from estimator_core.canned.dnn import Network
from estimator_core.estimator import Estimator
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.spec.types import ModelFn
from estimator_core.v1.heads import classifier_head, regressor_head
from estimator_core.v1.optimizers import optimizer_for
from estimator_core.v1.scopes import (
    hidden_layer_partitioner,
    in_name_scope,
    input_layer_partitioner_or_default,
    model_in_scope,
)

_SCOPE = "dnn"
_LEARNING_RATE = 0.05


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
    part = ModelPart(in_name_scope(logit_fn, _SCOPE), optimizer_for(optimizer, _LEARNING_RATE))
    return model_in_scope(compose(head, [part]), _SCOPE, hidden_partitioner)


class DNNEstimator(Estimator):
    """A neural network with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> estimator = DNNEstimator(MultiClassHead(3), hidden_units=[32, 16], feature_columns=[price])

    Args: same as `estimator_core.DNNEstimator`, except:
        optimizer: "Adagrad" (the default), "Adam", "Ftrl", "RMSProp", "SGD": the optimizers of
            `tf.compat.v1.train`, each with the learning rate 0.05; or any other optimizer.
        input_layer_partitioner: Partitioner of the variables of the input layer; None spreads them over
            the parameter servers, in slices from 64 MiB on.

    Source: `tf.compat.v1.estimator.DNNEstimator`. Ours takes the optimizers of `tf.compat.v1.train`
    with every head; 2.15 rejects all optimizers with its heads.
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
        input_layer_partitioner: Callable[..., Any] | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ):
        network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
        model_fn = dnn_model_fn(head, network, optimizer, input_layer_partitioner, config)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Estimator):
    """A neural network that classifies.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> classifier = DNNClassifier(hidden_units=[32, 16], feature_columns=[price], n_classes=3)
        >>> classifier.train(input_fn, steps=1000)

    Args: same as `estimator_core.DNNClassifier`, except:
        optimizer: See `DNNEstimator`.
        input_layer_partitioner: See `DNNEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.DNNClassifier`.
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
        input_layer_partitioner: Callable[..., Any] | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        batch_norm: bool = False,
    ):
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
        model_fn = dnn_model_fn(head, network, optimizer, input_layer_partitioner, config)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """A neural network that predicts numbers.

    Example:
        >>> size = tf.feature_column.numeric_column("size")
        >>> regressor = DNNRegressor(hidden_units=[32, 16], feature_columns=[size])
        >>> regressor.train(input_fn, steps=1000)

    Args: same as `estimator_core.DNNRegressor`, except:
        optimizer: See `DNNEstimator`.
        input_layer_partitioner: See `DNNEstimator`.
        loss_reduction: One of `tf.compat.v1.losses.Reduction`; the default is the sum over the batch.

    Source: `tf.compat.v1.estimator.DNNRegressor`.
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
        input_layer_partitioner: Callable[..., Any] | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        batch_norm: bool = False,
    ):
        head = regressor_head(label_dimension, weight_column, loss_reduction)
        network = Network(hidden_units, feature_columns, activation_fn, dropout, batch_norm)
        model_fn = dnn_model_fn(head, network, optimizer, input_layer_partitioner, config)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
