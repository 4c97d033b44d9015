"""WeightedHead: base of the heads that weigh a loss for each example."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.base import Head
from estimator_core.heads.checks import (
    call_loss_fn,
    check_loss_fn,
    check_weight_column,
    checked_logits,
    checked_weights,
)
from estimator_core.heads.loss_reduction import check_loss_reduction, reduce_loss
from estimator_core.spec.keys import MetricKeys


class WeightedHead(Head):
    """A head with a loss for each example, weighted and reduced to one number.

    A subclass defines the processing of labels, their loss, and further metrics.

    `loss_fn`: the user's replacement of `own_loss`, or None.
    `loss_dimension`: number of losses of an example.
    """

    def __init__(
        self,
        weight_column: Any,
        loss_reduction: str,
        loss_fn: Callable[..., Any] | None,
        name: str | None,
        loss_dimension: int = 1,
    ):
        self._weight_column = check_weight_column(weight_column)
        self._loss_reduction = check_loss_reduction(loss_reduction)
        self._loss_fn = check_loss_fn(loss_fn)
        self._name = name
        self._loss_dimension = loss_dimension

    @property
    def name(self) -> str | None:
        """Name of the head, or None."""
        return self._name

    @property
    def loss_reduction(self) -> str:
        """One of `LossReduction`."""
        return self._loss_reduction

    @property
    def weight_column(self) -> Any:
        """Feature name or numeric column of example weights, or None."""
        return self._weight_column

    @abc.abstractmethod
    def processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns the checked labels as numbers, `[batch_size, any]`."""

    @abc.abstractmethod
    def own_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the losses of processed labels, `[batch_size, loss_dimension]`."""

    @abc.abstractmethod
    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name, without those of the loss and the regularization."""

    @abc.abstractmethod
    def metric_values(self, labels: tf.Tensor, logits: tf.Tensor) -> Iterator[tuple[Any, ...]]:
        """Yields (name, *values) for each of `own_metrics`, from processed labels and logits."""

    def example_weights(self, features: Any, values: tf.Tensor) -> Any:
        """Returns the weights of `values`, `[batch_size, any]`; see `checked_weights`."""
        return checked_weights(features, self._weight_column, values)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """Returns the scalar training loss; see `Head.loss`."""
        del mode
        with tf.name_scope("losses"):
            logits = checked_logits(logits, self.logits_dimension)
            labels = self.processed_labels(labels, logits)
            return self.loss_of_processed(labels, logits, features, regularization_losses)

    def loss_of_processed(
        self,
        labels: tf.Tensor,
        logits: tf.Tensor,
        features: Any,
        regularization_losses: Sequence[Any] | None = None,
    ) -> tf.Tensor:
        """Returns the scalar training loss of processed labels."""
        losses = self.unreduced_losses(labels, logits, features)
        weights = self.example_weights(features, losses)
        return reduce_loss(losses, weights, self._loss_reduction, regularization_losses)

    @property
    def has_own_loss(self) -> bool:
        """True if the loss is the head's own, False if it is a `loss_fn`."""
        return self._loss_fn is None

    def unreduced_losses(self, labels: tf.Tensor, logits: tf.Tensor, features: Any) -> tf.Tensor:
        """Returns the losses of processed labels, `[batch_size, loss_dimension]`, before any weights."""
        if self._loss_fn is None:
            return self.own_loss(labels, logits)
        return call_loss_fn(
            self._loss_fn, labels, logits, features, self._loss_dimension, self._loss_reduction
        )

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key; see `Head.metrics`."""
        metrics = {MetricKeys.LOSS_MEAN: metrics_lib.mean(MetricKeys.LOSS_MEAN), **self.own_metrics()}
        if regularization_losses:
            name = MetricKeys.LOSS_REGULARIZATION
            metrics[name] = metrics_lib.mean(name)
        return {self._with_name(name): metric for name, metric in metrics.items()}

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Adds a batch to the metrics and returns them; see `Head.update_metrics`."""
        del mode
        logits = checked_logits(logits, self.logits_dimension)
        labels = self.processed_labels(labels, logits)
        losses = self.unreduced_losses(labels, logits, features)
        weights = self.example_weights(features, losses)
        values = self.metric_values(labels, logits)
        total = tf.add_n(list(regularization_losses)) if regularization_losses else None
        return self.update_with_batch(eval_metrics, values, losses, weights, total)

    def update_with_batch(
        self,
        eval_metrics: dict[str, Any],
        values: Iterable[tuple[Any, ...]],
        losses: tf.Tensor,
        weights: Any,
        regularization_loss: Any = None,
    ) -> dict[str, Any]:
        """Adds a batch to the metrics and returns them.

        `values`: (name, *values) for each of `own_metrics`; see `metric_values`.
        `losses`: `[batch_size, loss_dimension]`; the weights broadcast to them.
        """
        if isinstance(weights, float):  # it is 1: metrics without weights have fewer operations
            weights = None
        for name, *tensors in itertools.chain([(MetricKeys.LOSS_MEAN, losses)], values):
            metric = eval_metrics[self._with_name(name)]
            metrics_lib.update(metric, *tensors, sample_weight=weights)
        if regularization_loss is not None:
            key = self._with_name(MetricKeys.LOSS_REGULARIZATION)
            metrics_lib.update(eval_metrics[key], regularization_loss)
        return eval_metrics
