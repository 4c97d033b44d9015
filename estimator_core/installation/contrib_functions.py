"""The names of tf.contrib whose arguments no function of today has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.canned.rnn import RNNClassifier, RNNEstimator
from estimator_core.estimator import Estimator
from estimator_core.export import PredictOutput
from estimator_core.heads import PoissonRegressionHead, RegressionHead
from estimator_core.logits.rnn import USE_DEFAULT
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE, EstimatorSpec
from estimator_core.spec.keys import SignatureKeys

_OPTIMIZERS: Mapping[str, Callable[..., Any]] = {
    "Adagrad": tf1.train.AdagradOptimizer,
    "Adam": tf1.train.AdamOptimizer,
    "Ftrl": tf1.train.FtrlOptimizer,
    "Momentum": lambda rate: tf1.train.MomentumOptimizer(rate, momentum=0.9),
    "RMSProp": tf1.train.RMSPropOptimizer,
    "SGD": tf1.train.GradientDescentOptimizer,
}
_SUMMARIES = ("learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm")


def regression_head(weight_column: Any = None, label_dimension: int = 1, *args: Any, **others: Any) -> Any:
    """Returns a `RegressionHead`."""
    return RegressionHead(label_dimension, weight_column, *args, **others)


def poisson_regression_head(
    weight_column: Any = None, label_dimension: int = 1, *args: Any, **others: Any
) -> Any:
    """Returns a `PoissonRegressionHead`."""
    return PoissonRegressionHead(label_dimension, weight_column, *args, **others)


def rnn_estimator(
    head: Any,
    sequence_feature_columns: Any,
    context_feature_columns: Any = None,
    num_units: Any = None,
    cell_type: Any = "basic_rnn",
    *args: Any,
    **others: Any,
) -> Any:
    """Returns an `RNNEstimator` of `num_units`."""
    columns = (sequence_feature_columns, context_feature_columns)
    return RNNEstimator(head, *columns, num_units, _cell_type(cell_type), *args, **others)


def rnn_classifier(
    sequence_feature_columns: Any,
    context_feature_columns: Any = None,
    num_units: Any = None,
    cell_type: Any = "basic_rnn",
    *args: Any,
    **others: Any,
) -> Any:
    """Returns an `RNNClassifier` of `num_units`."""
    columns = (sequence_feature_columns, context_feature_columns)
    return RNNClassifier(*columns, num_units, _cell_type(cell_type), *args, **others)


def _cell_type(name: Any) -> Any:
    return USE_DEFAULT if name == "basic_rnn" else name


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """Returns an Estimator like `estimator` whose predictions contain features as well; None means all."""
    wanted = [keys] if isinstance(keys, str) else keys

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if not spec.predictions:
            return spec
        if not isinstance(spec.predictions, Mapping):
            raise ValueError(
                f"Predictions should be a dict to be able to forward features. Received: {spec.predictions}"
            )
        forwarded = {}
        for key in features if wanted is None else wanted:
            if key not in features:
                raise ValueError(f"keys must be features. Received: {key!r}, not in {sorted(features)}")
            if key in spec.predictions:
                raise ValueError(f"There is a prediction of the feature's name. Received: {key!r}")
            value = features[key]
            if isinstance(value, tf.SparseTensor) and key in (sparse_default_values or {}):
                value = tf.sparse.to_dense(value, sparse_default_values[key])  # type: ignore[index]
            if isinstance(value, tf.SparseTensor):
                raise ValueError(
                    f"Feature {key!r} is sparse: leave it out by keys, or give it a value in "
                    "sparse_default_values."
                )
            forwarded[key] = value
        outputs = dict(spec.export_outputs or {})
        for name in {SignatureKeys.PREDICT, DEFAULT_SERVING_SIGNATURE} & {*outputs}:
            output = outputs[name]
            if isinstance(output, PredictOutput):
                outputs[name] = PredictOutput({**output.outputs, **forwarded})
        predictions = {**spec.predictions, **forwarded}
        return spec._replace(predictions=predictions, export_outputs=outputs or None)

    return Estimator(
        model_fn, estimator.model_dir, estimator.config, warm_start_from=estimator.warm_start_settings
    )


class _GloballyClipped(tf1.train.Optimizer):
    """Clips all gradients together, then applies them by another optimizer."""

    def __init__(self, optimizer: Any, clip_norm: Any):
        super().__init__(use_locking=False, name=f"ClipByNorm{optimizer.get_name()}")
        self._optimizer = optimizer
        self._clip_norm = clip_norm

    def compute_gradients(self, *args: Any, **others: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **others)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        clipped = _clipped(grads_and_vars, self._clip_norm)
        return self._optimizer.apply_gradients(clipped, global_step, name)

    def get_slot(self, var: Any, name: str) -> Any:
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        return self._optimizer.variables()


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> Any:
    """Returns an optimizer that scales all gradients so that their global norm is at most `clip_norm`."""
    return _GloballyClipped(optimizer, clip_norm)


def _clipped(grads_and_vars: Any, norm: Any) -> list[tuple[Any, Any]]:
    gradients, variables = zip(*grads_and_vars, strict=True)
    return list(zip(tf.clip_by_global_norm(gradients, norm)[0], variables, strict=True))


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> tf.Tensor:
    """Returns the loss, whose evaluation makes a training step.

    Its variables are `OptimizeLoss/learning_rate` and `OptimizeLoss/<variable>/<slot>`, or below `name`.

    Raises:
        ValueError: An argument is invalid.

    Source: `tf.contrib.layers.optimize_loss` of TensorFlow 1.15.
    """
    if summaries is None:
        summaries = ("loss", "learning_rate", "global_gradient_norm")
    elif unknown := set(summaries) - set(_SUMMARIES):
        raise ValueError(f"Summaries should be some of {_SUMMARIES}. Received: {sorted(unknown)}")
    if global_step is None:
        global_step = tf1.train.get_global_step()
    with tf1.variable_scope(name, "OptimizeLoss", [loss, global_step]):
        update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops
        with tf.control_dependencies(list(update_ops)):
            loss = tf.identity(loss)
        rate = learning_rate
        if isinstance(rate, (int, float)):
            if rate < 0:
                raise ValueError(f"learning_rate must not be negative. Received: {rate}")
            initializer = tf1.initializers.constant(rate)
            rate = tf1.get_variable("learning_rate", [], trainable=False, initializer=initializer)
        if rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise ValueError("learning_rate_decay_fn needs a global_step. Received: global_step=None")
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in summaries:
                tf1.summary.scalar("learning_rate", rate)
        optimizer = _optimizer(optimizer, rate)
        gradients = optimizer.compute_gradients(
            loss,
            tf1.trainable_variables() if variables is None else variables,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gradient_noise_scale is not None:
            gradients = [(_with_noise(grad, gradient_noise_scale), var) for grad, var in gradients]
        if gradient_multipliers is not None:
            factors = {getattr(key, "name", key): factor for key, factor in gradient_multipliers.items()}
            gradients = [(_scaled(grad, factors.get(var.name)), var) for grad, var in gradients]
        writes_norm = not {"global_gradient_norm", "gradient_norm"}.isdisjoint(summaries)
        if writes_norm:
            tf1.summary.scalar("global_norm/gradient_norm", _global_norm(gradients))
        if callable(clip_gradients):
            gradients = clip_gradients(gradients)
        elif clip_gradients is not None:
            gradients = _clipped(gradients, clip_gradients)
        if "loss" in summaries:
            tf1.summary.scalar("loss", loss)
        for gradient, variable in gradients:
            if gradient is not None:
                suffix = variable.name.replace(":", "_")
                values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
                if "gradients" in summaries:
                    tf1.summary.histogram(f"gradients/{suffix}", values)
                if "gradient_norm" in summaries:
                    tf1.summary.scalar(f"gradient_norm/{suffix}", tf.linalg.global_norm([values]))
        if clip_gradients is not None and writes_norm:
            tf1.summary.scalar("global_norm/clipped_gradient_norm", _global_norm(gradients))
        counted = global_step if increment_global_step else None
        update = optimizer.apply_gradients(gradients, global_step=counted, name="train")
        with tf.control_dependencies([update]):
            return tf.identity(loss)


def _optimizer(optimizer: Any, rate: Any) -> Any:
    if isinstance(optimizer, tf1.train.Optimizer):
        return optimizer
    if isinstance(optimizer, str):
        if optimizer not in _OPTIMIZERS:
            raise ValueError(f"Optimizer must be one of {list(_OPTIMIZERS)}. Received: {optimizer!r}")
        optimizer = _OPTIMIZERS[optimizer]
        if rate is None:
            raise ValueError("An optimizer given by name needs a learning_rate. Received: None")
    if callable(optimizer):
        made = optimizer() if rate is None else optimizer(rate)
        if isinstance(made, tf1.train.Optimizer):
            return made
    raise ValueError(
        "Optimizer must be a name, an optimizer of tf.compat.v1.train, its class, or a function of the "
        f"learning rate. Received: {optimizer!r}"
    )


def _with_noise(gradient: Any, scale: float) -> Any:
    if gradient is None:
        return None
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    noise = tf.random.truncated_normal(gradient.shape if values is gradient else gradient.dense_shape)
    return tf.convert_to_tensor(gradient) + noise * scale


def _scaled(gradient: Any, factor: Any) -> Any:
    if gradient is None or factor is None:
        return gradient
    return tf.math.scalar_mul(tf.cast(factor, gradient.dtype), gradient)


def _global_norm(gradients: Any) -> tf.Tensor:
    return tf.linalg.global_norm([gradient for gradient, _ in gradients])


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a function from weights to `scale` times the sum of their absolute values."""
    return l1_l2_regularizer(scale, 0.0, scope or "l1_regularizer")


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a function from weights to `scale` times half the sum of their squares."""
    return l1_l2_regularizer(0.0, scale, scope or "l2_regularizer")


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Callable[[Any], Any]:
    """Returns a function from weights to the sum of both penalties, which is None if both scales are 0."""
    if scale_l1 < 0 or scale_l2 < 0:
        raise ValueError(f"Scales must not be negative. Received: {scale_l1}, {scale_l2}")

    def penalty(weights: Any) -> Any:
        with tf.name_scope(scope or "l1_l2_regularizer"):
            l1 = scale_l1 * tf.reduce_sum(tf.abs(weights)) if scale_l1 else None
            l2 = scale_l2 * tf.nn.l2_loss(weights) if scale_l2 else None
            return l1 if l2 is None else l2 if l1 is None else l1 + l2

    return penalty


def apply_regularization(regularizer: Callable[[Any], Any], weights_list: Any = None) -> tf.Tensor:
    """Returns the sum of the penalties of weights, and adds it to the graph's regularization losses."""
    if weights_list is None:
        weights_list = tf1.get_collection(tf1.GraphKeys.WEIGHTS)
    penalties = [penalty for weights in weights_list if (penalty := regularizer(weights)) is not None]
    total = tf.add_n(penalties) if penalties else tf.constant(0.0)
    tf1.add_to_collection(tf1.GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = tf.float32,
) -> Any:
    """Returns an initializer whose variance is `factor` by the number of inputs or outputs, or their mean."""
    if uniform:
        return tf1.initializers.variance_scaling(factor, mode.lower(), "uniform", seed, dtype)
    # TensorFlow 1's deviation of the cut normal distribution is 1.3 ** 0.5; today's is 1 / 0.8796.
    scale = 1.3 * factor * 0.87962566103423978**2
    return tf1.initializers.variance_scaling(scale, mode.lower(), "truncated_normal", seed, dtype)


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = tf.float32) -> Any:
    """Returns Glorot's initializer."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Any], Any]:
    """Returns a function for `Dataset.apply`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def index_table_from_tensor(mapping: Any, *args: Any, **others: Any) -> Any:
    """Returns a table from words to their positions in `mapping`."""
    return tf1.lookup_ops.index_table_from_tensor(mapping, *args, **others)


def index_to_string_table_from_tensor(mapping: Any, *args: Any, **others: Any) -> Any:
    """Returns a table from positions in `mapping` to words."""
    return tf1.lookup_ops.index_to_string_table_from_tensor(mapping, *args, **others)
