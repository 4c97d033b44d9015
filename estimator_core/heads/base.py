"""Head: turns logits into predictions, loss, metrics and signatures."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.metrics import GraphMetric
from estimator_core.optimizers.minimize import minimize
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE, EstimatorSpec
from estimator_core.spec.export_outputs import ExportOutput, PredictOutput
from estimator_core.spec.keys import MetricKeys, SignatureKeys
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys


class Head(abc.ABC):
    """Turns the logits of any model into an `EstimatorSpec`.

    Subclass it for your own problem type: define the loss, predictions and metrics of logits, and
    `create_estimator_spec` does the rest.

    Example:
        >>> class QuantileHead(Head):
        ...     name, logits_dimension, loss_reduction = None, 1, "sum_over_batch_size"
        ...
        ...     def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        ...         error = tf.cast(labels, tf.float32) - logits
        ...         return tf.reduce_mean(tf.maximum(0.9 * error, -0.1 * error))
        ...
        ...     def predictions(self, logits, keys=None):
        ...         return {"quantile": logits}
        ...
        ...     def metrics(self, regularization_losses=None):
        ...         return {}
        ...
        ...     def update_metrics(self, eval_metrics, features, logits, labels, **unused):
        ...         return eval_metrics

    Source: `tf.estimator.Head`. Ours has `export_outputs` as a method to override, and takes any
    optimizer; `trainable_variables` may be left out.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str | None:
        """Name of the head, appended to metric keys as "/<name>"; None appends nothing."""

    @property
    def summary_name(self) -> str | None:
        """Suffix of the tags of the loss summaries, as "/<summary_name>": the head's name."""
        return self.name

    @property
    def training_scope(self) -> str:
        """Name scope of the training; an optimizer's variables, such as Adam's powers, are named by it."""
        return "training"

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """Size of the last dimension of the logits that the model must produce."""

    @property
    @abc.abstractmethod
    def loss_reduction(self) -> str:
        """Reduction of the losses of a batch, one of `LossReduction`."""

    @abc.abstractmethod
    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """Returns the scalar training loss of a batch, regularization included.

        Args:
            labels: Labels of the batch.
            logits: `[batch_size, logits_dimension]`.
            features: Dict of feature name to tensor, for weights.
            mode: One of `ModeKeys`.
            regularization_losses: Scalars to add to the loss.
        """

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns predictions by key, each `[batch_size, ...]`.

        Args:
            logits: `[batch_size, logits_dimension]`.
            keys: The `PredictionKeys` to compute; None computes all.
        """

    @abc.abstractmethod
    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metric objects by key; Keras metrics in eager mode.

        Args:
            regularization_losses: See `loss`; their sum is a separate metric.
        """

    @abc.abstractmethod
    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Adds a batch to the metrics and returns them.

        Args:
            eval_metrics: Metrics from `metrics`.
            features: Dict of feature name to tensor, for weights.
            logits: `[batch_size, logits_dimension]`.
            labels: Labels of the batch.
            mode: One of `ModeKeys`.
            regularization_losses: See `loss`.
        """

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the signatures of an exported model, one of them "serving_default".

        Args:
            predictions: Predictions from `predictions`.
        """
        output = PredictOutput(predictions)
        return {DEFAULT_SERVING_SIGNATURE: output, SignatureKeys.PREDICT: output}

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """Returns the `EstimatorSpec` of a model that ends in this head.

        In eager mode the metrics of EVAL are Keras metrics that hold the batch, and TRAIN needs a
        `train_op_fn` that returns a tensor.

        Args:
            features: Dict of feature name to tensor, from `model_fn`'s arguments.
            mode: One of `ModeKeys`.
            logits: float32 `[batch_size, logits_dimension]`.
            labels: Labels of the batch; needed in TRAIN and EVAL.
            optimizer: Optimizer that minimizes the loss in TRAIN, any that `optimizers.get_optimizer` takes.
            trainable_variables: Variables for `optimizer`; None means all trainable variables.
            train_op_fn: Function from the loss to a train op, instead of `optimizer`; the op must
                also increment the global step.
            update_ops: Ops that every training step runs before the update, such as moving averages
                of batch normalization; None means the graph's `UPDATE_OPS` collection.
            regularization_losses: Scalars to add to the loss.

        Raises:
            ValueError: Mode, labels or logits don't fit, or in TRAIN both or neither of `optimizer`
                and `train_op_fn` are given.
        """
        if mode not in ModeKeys.ALL:
            raise ValueError(f"mode must be one of {ModeKeys.ALL}. Received: mode={mode!r}")
        arguments: dict[str, Any] = {
            "features": features,
            "mode": mode,
            "logits": logits,
            "labels": labels,
            "optimizer": optimizer,
            "trainable_variables": trainable_variables,
            "train_op_fn": train_op_fn,
            "update_ops": update_ops,
            "regularization_losses": regularization_losses,
        }
        spec_fn = getattr(self, "_create_tpu_estimator_spec", None)
        # tf.estimator called this method of a subclass; `installation` gives our heads one as well.
        if spec_fn is None or getattr(spec_fn, "is_provided", False):
            return self._own_spec(**arguments)
        return spec_fn(**arguments).as_estimator_spec()

    def _own_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
        *,
        with_metric_fn: bool = False,
    ) -> EstimatorSpec:
        """Returns the `EstimatorSpec` of this class, even if a subclass makes another.

        With `with_metric_fn`, the metrics of EVAL are a `MetricFn`, which is not called yet.
        """
        with tf.name_scope(self.name or "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(
                    mode, predictions=predictions, export_outputs=self.export_outputs(predictions)
                )
            loss, parts = self._loss_and_parts(labels, logits, features, mode, regularization_losses)
            if mode == ModeKeys.EVAL:
                tensors = {"features": features, "logits": logits, "labels": labels}
                if regularization_losses:
                    tensors["regularization_losses"] = list(regularization_losses)
                metric_fn = MetricFn(self._batch_metric_ops, tensors)
                if self.loss_reduction not in LossReduction.MEANS:
                    loss = current_execution().whole_sum(loss)
                return EstimatorSpec(
                    mode,
                    predictions=predictions,
                    loss=loss,
                    eval_metric_ops=metric_fn if with_metric_fn else metric_fn(),
                )
        for name, part in parts.items():
            write_summary(f"{MetricKeys.LOSS}/{name}", part)
            # tf.estimator builds an unused train op for each head first, so that
            # the slots in its checkpoints are below "training_<number of heads>".
            with tf.name_scope(""), tf.name_scope("training"):
                pass
        write_loss_summaries(loss, regularization_losses, self.summary_tag)
        train_op = head_train_op(
            loss,
            self.loss_reduction,
            optimizer,
            trainable_variables,
            train_op_fn,
            update_ops,
            self.training_scope,
        )
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _loss_and_parts(
        self, labels: Any, logits: Any, features: Any, mode: str, regularization_losses: Sequence[Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the loss, and its parts by name: each gets the summary "loss/<name>" in TRAIN."""
        loss = self.loss(
            labels=labels,
            logits=logits,
            features=features,
            mode=mode,
            regularization_losses=regularization_losses,
        )
        return loss, {}

    def _batch_metric_ops(
        self, features: Any, logits: Any, labels: Any, regularization_losses: Sequence[Any] | None = None
    ) -> dict[str, Any]:
        """Returns the metrics of a batch in the form of `EstimatorSpec.eval_metric_ops`."""
        eval_metrics = self.update_metrics(
            self.metrics(regularization_losses=regularization_losses),
            features=features,
            logits=logits,
            labels=labels,
            mode=ModeKeys.EVAL,
            regularization_losses=regularization_losses,
        )
        return {key: as_metric_op(metric) for key, metric in eval_metrics.items()}

    def _with_name(self, key: str) -> str:
        """Returns a metric key of this head."""
        return f"{key}/{self.name}" if self.name else key

    def summary_tag(self, key: str) -> str:
        """Returns the tag of a loss summary of this head."""
        return f"{key}/{self.summary_name}" if self.summary_name else key


def write_loss_summaries(
    loss: Any, regularization_losses: Sequence[Any] | None = None, tag_of: Callable[[str], str] | None = None
) -> None:
    """Adds the scalar summaries of a training loss and of its regularization."""
    tag_of = tag_of or str
    write_summary(tag_of(MetricKeys.LOSS), loss)
    if regularization_losses:
        total = tf.add_n(list(regularization_losses))
        write_summary(tag_of(MetricKeys.LOSS_REGULARIZATION), total)


def write_summary(tag: str, value: Any) -> None:
    """Adds a scalar summary to the graph; in eager mode, writes it if there is a default writer.

    The tag is the whole name, in any scope.
    """
    # Without a writer, `tf.compat.v1.summary` would warn.
    if not tf1.executing_eagerly_outside_functions() or tf.summary.should_record_summaries():
        with tf.name_scope(""):
            tf1.summary.scalar(tag, value)


def as_metric_op(metric: Any) -> Any:
    """Returns a metric in the form of `EstimatorSpec.eval_metric_ops`."""
    return metric.as_pair() if isinstance(metric, GraphMetric) else metric


def head_train_op(
    loss: Any,
    loss_reduction: str,
    optimizer: Any = None,
    trainable_variables: Sequence[Any] | None = None,
    train_op_fn: Callable[[Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    scope: str = "training",
) -> Any:
    """Returns the operation of a training step; see the arguments of `Head.create_estimator_spec`."""
    if (optimizer is None) == (train_op_fn is None):
        raise ValueError(
            "Exactly one of optimizer and train_op_fn must be given in mode TRAIN. "
            f"Received: optimizer={optimizer!r}, train_op_fn={train_op_fn!r}"
        )
    if optimizer is not None and tf.executing_eagerly():
        raise ValueError(
            "An optimizer needs the graph of the loss, and there is none in eager mode: take the "
            "gradients of `loss()` in a tf.GradientTape, or make the EstimatorSpec in a model_fn. "
            f"Received: optimizer={optimizer!r}"
        )
    if loss_reduction in LossReduction.MEANS:
        loss = current_execution().share_of_mean(loss)
    if update_ops is None:
        update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    # Outside of the current scopes: Adam's powers are "training/beta1_power" for every head.
    root, training = tf.name_scope(""), tf.name_scope(scope)
    with root, training, tf.control_dependencies(list(update_ops)):
        if train_op_fn is not None:
            train_op = train_op_fn(loss)
        else:
            train_op = minimize(optimizer, loss, trainable_variables)
    if train_op is None:
        raise ValueError(f"train_op_fn must return an op or a tensor. Received: train_op_fn={train_op_fn!r}")
    return tf.group(train_op, *update_ops) if update_ops else train_op
