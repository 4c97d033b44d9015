"""The canned Estimators with the defaults of TensorFlow 1: what differs from `estimator_core.canned`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from estimator_core import canned
from estimator_core.canned.baseline import LEARNING_RATE, baseline_model_fn
from estimator_core.canned.dnn import Network
from estimator_core.canned.linear import LinearModel
from estimator_core.estimator import Estimator
from estimator_core.heads import Head
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.spec.types import ModelFn
from estimator_core.v1.heads import classifier_head, regressor_head
from estimator_core.v1.model_fns import (
    dnn_linear_combined_model_fn,
    dnn_model_fn,
    linear_model_fn,
    v1_optimizer,
)


def _constructor(
    original: type, model_fn: Callable[[Head, Any], ModelFn], **partitioner_before: str
) -> Callable[..., None]:
    """Returns the constructor of `original` with the defaults of TensorFlow 1.

    `model_fn`: function of the head and the arguments of the constructor.
    `partitioner_before`: name of an additional argument, and of the argument that follows it.
    """
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(original.__init__).parameters.items():  # type: ignore[misc]
        for partitioner, next_name in partitioner_before.items():
            if name == next_name:
                parameters[partitioner] = inspect.Parameter(
                    partitioner,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=None,
                    annotation="Callable[..., Any] | None",
                )
        if name == "loss_reduction":
            parameter = parameter.replace(default=LossReduction.WEIGHTED_SUM)
        parameters[name] = parameter
    signature = inspect.Signature(list(parameters.values()))

    def __init__(self: Estimator, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        arguments = SimpleNamespace(**bound.arguments)
        Estimator.__init__(
            self,
            model_fn(_head(arguments), arguments),
            arguments.model_dir,
            arguments.config,
            warm_start_from=bound.arguments.get("warm_start_from"),
        )

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _head(arguments: Any) -> Head:
    if hasattr(arguments, "head"):
        return arguments.head
    weighting = arguments.weight_column
    if hasattr(arguments, "label_dimension"):
        return regressor_head(arguments.label_dimension, weighting, arguments.loss_reduction)
    return classifier_head(
        arguments.n_classes, weighting, arguments.label_vocabulary, arguments.loss_reduction
    )


def _baseline(head: Head, arguments: Any) -> ModelFn:
    return baseline_model_fn(head, v1_optimizer(arguments.optimizer, LEARNING_RATE))


def _dnn(head: Head, arguments: Any) -> ModelFn:
    network = Network(
        arguments.hidden_units,
        arguments.feature_columns,
        arguments.activation_fn,
        arguments.dropout,
        arguments.batch_norm,
    )
    partitioner, config = arguments.input_layer_partitioner, arguments.config
    return dnn_model_fn(head, network, arguments.optimizer, partitioner, config)


def _linear(head: Head, arguments: Any) -> ModelFn:
    linear = LinearModel(arguments.feature_columns, arguments.sparse_combiner)
    partitioner, config = arguments.partitioner, arguments.config
    return linear_model_fn(head, linear, arguments.optimizer, partitioner, config)


def _dnn_linear_combined(head: Head, arguments: Any) -> ModelFn:
    return dnn_linear_combined_model_fn(
        head,
        Network(
            arguments.dnn_hidden_units,
            arguments.dnn_feature_columns,
            arguments.dnn_activation_fn,
            arguments.dnn_dropout,
            arguments.batch_norm,
        ),
        arguments.dnn_optimizer,
        LinearModel(arguments.linear_feature_columns, arguments.linear_sparse_combiner),
        arguments.linear_optimizer,
        arguments.input_layer_partitioner,
        arguments.config,
    )


class BaselineEstimator(Estimator):
    """A model that predicts the same for all examples, with a head of your choice.

    Example:
        >>> estimator = BaselineEstimator(MultiLabelHead(n_classes=3))

    Args: same as `estimator_core.BaselineEstimator`, except:
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD": the optimizers of
            `tf.compat.v1.train`, each with the learning rate 0.3; or any other optimizer.

    Source: `tf.compat.v1.estimator.BaselineEstimator`.
    """

    __init__ = _constructor(canned.BaselineEstimator, _baseline)


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

    __init__ = _constructor(canned.BaselineClassifier, _baseline)


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

    __init__ = _constructor(canned.BaselineRegressor, _baseline)


class LinearEstimator(Estimator):
    """A linear model with a head of your choice.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> estimator = LinearEstimator(RegressionHead(label_dimension=2), feature_columns=[price])

    Args: same as `estimator_core.LinearEstimator`, except:
        optimizer: "Ftrl" (the default), "Adagrad", "Adam", "RMSProp", "SGD": the optimizers of
            `tf.compat.v1.train`, each with the learning rate 0.2; any other optimizer; or
            `experimental.LinearSDCA`, for unpartitioned variables.
        partitioner: Partitioner of the variables of the model; None spreads them over the parameter
            servers, in slices from 64 MiB on.

    Source: `tf.compat.v1.estimator.LinearEstimator`. Ours takes the optimizers of
    `tf.compat.v1.train` with every head; 2.15 rejects all optimizers with its heads.
    """

    __init__ = _constructor(canned.LinearEstimator, _linear, partitioner="sparse_combiner")


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

    __init__ = _constructor(canned.LinearClassifier, _linear, partitioner="warm_start_from")


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

    __init__ = _constructor(canned.LinearRegressor, _linear, partitioner="warm_start_from")


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

    __init__ = _constructor(canned.DNNEstimator, _dnn, input_layer_partitioner="config")


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

    __init__ = _constructor(canned.DNNClassifier, _dnn, input_layer_partitioner="config")


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

    __init__ = _constructor(canned.DNNRegressor, _dnn, input_layer_partitioner="config")


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
        dnn_optimizer: Optimizer like `linear_optimizer`; "Adagrad" is the default, with the learning rate
            0.001.
        input_layer_partitioner: Partitioner of the variables of the linear model and of the network's input
            layer; None spreads them over the parameter servers, in slices from 64 MiB on.

    Source: `tf.compat.v1.estimator.DNNLinearCombinedEstimator`. Ours also takes `warm_start_from`.
    """

    __init__ = _constructor(
        canned.DNNLinearCombinedEstimator, _dnn_linear_combined, input_layer_partitioner="config"
    )


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

    __init__ = _constructor(
        canned.DNNLinearCombinedClassifier, _dnn_linear_combined, input_layer_partitioner="config"
    )


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

    __init__ = _constructor(
        canned.DNNLinearCombinedRegressor, _dnn_linear_combined, input_layer_partitioner="config"
    )
