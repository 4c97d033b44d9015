"""EstimatorSpec: the checked result of a model_fn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.spec.arguments import checked_instances
from estimator_core.spec.export_outputs import ExportOutput, PredictOutput, as_our_output
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys

DEFAULT_SERVING_SIGNATURE = tf1.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class _Fields(NamedTuple):
    mode: str | None
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    export_outputs: dict[str, ExportOutput] | None
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class EstimatorSpec(_Fields):
    """The ops and tensors of one mode, the result of a `model_fn`.

    A mode needs its own arguments: TRAIN `loss` and `train_op`, EVAL `loss`, PREDICT `predictions`.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     weight = tf.compat.v1.get_variable("weight", [])
        ...     predictions = weight * features["x"]
        ...     loss = tf.reduce_mean(tf.square(predictions - labels))
        ...     optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        ...     step = tf.compat.v1.train.get_global_step()
        ...     return EstimatorSpec(mode, predictions, loss, optimizer.minimize(loss, step))

    Args:
        mode: One of `ModeKeys`; None means the mode that `model_fn` was called in.
        predictions: `Tensor`, or dict of name to `Tensor`, `[batch_size, ...]` each.
        loss: `Tensor` with one element.
        train_op: Operation or `Tensor` of one training step.
        eval_metric_ops: Metrics by name: each a `(value, update_op)` pair or a Keras metric that
            was already updated with the batch.
        export_outputs: `ExportOutput`s by signature name. With several, one must be named
            "serving_default". None exports `predictions`.
        training_chief_hooks: `SessionRunHook`s for training on the chief.
        training_hooks: `SessionRunHook`s for training on every worker.
        scaffold: `tf.compat.v1.train.Scaffold`; None means a default one.
        evaluation_hooks: `SessionRunHook`s for evaluation.
        prediction_hooks: `SessionRunHook`s for prediction.

    Raises:
        ValueError: An argument that the mode needs is missing or has the wrong shape.
        TypeError: An argument has the wrong type.

    Source: `tf.estimator.EstimatorSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str | None,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | MetricFn | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """Returns the checked EstimatorSpec."""
        if mode is not None and mode not in ModeKeys.ALL:
            raise ValueError(f"mode must be one of {ModeKeys.ALL}. Received: mode={mode!r}")
        predictions = _checked_predictions(predictions, mode)
        if mode == ModeKeys.PREDICT and export_outputs is None:
            export_outputs = {DEFAULT_SERVING_SIGNATURE: PredictOutput(predictions)}
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=_checked_loss(loss, mode),
            train_op=_checked_train_op(train_op, mode),
            eval_metric_ops=_checked_eval_metric_ops(eval_metric_ops),
            export_outputs=_checked_export_outputs(export_outputs),
            training_chief_hooks=checked_instances(training_chief_hooks, "training_chief_hooks"),
            training_hooks=checked_instances(training_hooks, "training_hooks"),
            scaffold=_checked_scaffold(scaffold),
            evaluation_hooks=checked_instances(evaluation_hooks, "evaluation_hooks"),
            prediction_hooks=checked_instances(prediction_hooks, "prediction_hooks"),
        )

    def _replace(self, **changes: Any) -> EstimatorSpec:
        """Returns a copy with some fields changed; the mode stays, and the result is checked."""
        if changes.get("mode", self.mode) != self.mode:
            raise ValueError(f"mode of EstimatorSpec cannot be changed. Received: {changes['mode']!r}")
        return EstimatorSpec(**{**self._asdict(), **changes})


def _checked_predictions(predictions: Any, mode: str | None) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions: EstimatorSpec needs them in mode PREDICT.")
        return {}
    if isinstance(predictions, Mapping):
        return {key: _in_graph(value, f"predictions[{key!r}]") for key, value in predictions.items()}
    return _in_graph(predictions, "predictions")


def _checked_loss(loss: Any, mode: str | None) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError(f"Missing loss: EstimatorSpec needs it in mode {mode!r}.")
        return None
    loss = _in_graph(loss, "loss")
    if not loss.shape.is_compatible_with(tf.TensorShape([])):
        if loss.shape.num_elements() not in (None, 1):
            raise ValueError(
                f"Loss must be scalar, with shape [] or [1]; use tf.reduce_mean. Received: {loss}"
            )
        loss = tf.reshape(loss, [])
    return loss


def _checked_train_op(train_op: Any, mode: str | None) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op: EstimatorSpec needs it in mode TRAIN.")
        return None
    if not _can_be_run(train_op):
        raise TypeError(f"train_op must be an Operation or a Tensor. Received: train_op={train_op!r}")
    _check_graph(train_op, "train_op")
    return train_op


def _checked_eval_metric_ops(
    eval_metric_ops: Mapping[str, Any] | MetricFn | None,
) -> dict[str, Any] | MetricFn:
    if eval_metric_ops is None:
        return {}
    if isinstance(eval_metric_ops, MetricFn):
        return eval_metric_ops
    if not isinstance(eval_metric_ops, Mapping):
        raise TypeError(f"eval_metric_ops must be a dict. Received: {eval_metric_ops!r}")
    for name, metric in eval_metric_ops.items():
        is_pair = (
            isinstance(metric, tuple) and len(metric) == 2 and all(map(_can_be_run, tf.nest.flatten(metric)))
        )
        is_keras_metric = hasattr(metric, "update_state") and hasattr(metric, "result")
        if not (is_pair or is_keras_metric):
            raise TypeError(
                "Values of eval_metric_ops must be (metric_value, update_op) pairs of tensors, or "
                "Keras metrics. "
                f"Received: {name}={metric!r}"
            )
        if is_keras_metric and not tf.executing_eagerly() and getattr(metric, "updates", None) == []:
            raise ValueError(
                "A Keras metric in eval_metric_ops must be updated in model_fn: call its update_state(). "
                f"Received: {name}={metric!r}"
            )
        for part in tf.nest.flatten(metric) if is_pair else ():
            _check_graph(part, f"eval_metric_ops[{name!r}]")
    return dict(eval_metric_ops)


def _checked_export_outputs(
    export_outputs: Mapping[str, ExportOutput] | None,
) -> dict[str, ExportOutput] | None:
    if export_outputs is None:
        return None
    if not isinstance(export_outputs, Mapping):
        raise TypeError(f"export_outputs must be a dict. Received: {export_outputs!r}")
    outputs = {name: as_our_output(output) for name, output in export_outputs.items()}
    for name, output in outputs.items():
        if not isinstance(output, ExportOutput):
            raise TypeError(
                f"Values of export_outputs must be ExportOutput objects. Received: {name}={output!r}"
            )
    if DEFAULT_SERVING_SIGNATURE not in outputs:
        if len(outputs) != 1:
            raise ValueError(
                "export_outputs needs a default when it does not hold exactly one output: name one "
                f"of them {DEFAULT_SERVING_SIGNATURE!r}. Received: {sorted(outputs)}"
            )
        outputs[DEFAULT_SERVING_SIGNATURE] = next(iter(outputs.values()))
    return outputs


def _checked_scaffold(scaffold: Any) -> Any:
    if scaffold is None:
        return tf1.train.Scaffold()
    if not isinstance(scaffold, tf1.train.Scaffold):
        raise TypeError(f"scaffold must be a tf.compat.v1.train.Scaffold. Received: {scaffold!r}")
    return scaffold


def _can_be_run(value: Any) -> bool:
    if isinstance(value, (tf.SparseTensor, tf.RaggedTensor)):
        return False
    return tf.is_tensor(value) or isinstance(value, (tf.Operation, tf.Variable))


def _in_graph(value: Any, name: str) -> Any:
    """Returns `value` if it is a dense tensor of the current graph."""
    if isinstance(value, (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices)):
        raise TypeError(f"{name} must be a dense Tensor; convert it. Received: {value!r}")
    if not (tf.is_tensor(value) or isinstance(value, tf.Variable)):
        raise TypeError(f"{name} must be a Tensor. Received: {value!r}")
    _check_graph(value, name)
    return value


def _check_graph(value: Any, name: str) -> None:
    graph = tf1.get_default_graph()
    if getattr(value, "graph", graph) is not graph:
        raise ValueError(
            f"{name} is not in the graph that the Estimator is building: create it inside model_fn, even if "
            f"it is only passed on (tf.identity). Received: {value!r}"
        )
