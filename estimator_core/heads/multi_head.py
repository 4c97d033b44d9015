"""MultiHead: several heads over one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.base import Head
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE
from estimator_core.spec.export_outputs import ExportOutput, PredictOutput
from estimator_core.spec.keys import MetricKeys, SignatureKeys
from estimator_core.spec.rows import batch_weight


class MultiHead(Head):
    """Several heads on one model: each has its own logits, and their losses are added.

    Labels are a dict of head name to labels. Logits are a dict as well, or one `Tensor`, the
    concatenation of the heads' logits. Keys of predictions are (head name, key).

    Example:
        >>> head = MultiHead([RegressionHead(name="price"), MultiClassHead(3, name="kind")])
        >>> head.name, head.logits_dimension
        ('price_kind', 4)

    Args:
        heads: Heads with names and the same loss reduction.
        head_weights: Factors of the heads' losses; None weighs all the same.

    Raises:
        ValueError: There are no heads, names are missing or equal, or the number of weights differs.

    Source: `tf.estimator.MultiHead`. Only ours rejects two heads with one name: one would hide the
    other.
    """

    def __init__(self, heads: Sequence[Head], head_weights: Sequence[float] | None = None):
        if not heads:
            raise ValueError(f"Must specify heads. Received: heads={heads!r}")
        names = [head.name for head in heads]
        if not all(names):
            raise ValueError(f"All given heads must have a name. Received: names={names}")
        if len(set(names)) < len(names):
            raise ValueError(f"The names of the heads must differ. Received: names={names}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                "heads and head_weights must have the same size. "
                f"Received: len(heads)={len(heads)}, len(head_weights)={len(head_weights)}"
            )
        reductions = [head.loss_reduction for head in heads]
        if len(set(reductions)) > 1:
            raise ValueError(f"The loss_reduction must be the same for all heads. Received: {reductions}")
        self._heads = {str(head.name): head for head in heads}
        self._head_weights = tuple(head_weights or [1.0] * len(heads))

    @property
    def name(self) -> str:
        """The names of the heads, joined by "_"."""
        return "_".join(self._heads)

    @property
    def summary_name(self) -> None:
        """None: the merged loss is "loss", and the loss of each head "loss/<its name>"."""
        return None

    @property
    def logits_dimension(self) -> int:
        """Sum of the heads' dimensions."""
        return sum(head.logits_dimension for head in self._heads.values())

    @property
    def loss_reduction(self) -> str:
        """The heads' reduction, one of `LossReduction`."""
        return next(iter(self._heads.values())).loss_reduction

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """Returns the weighted sum of the heads' losses, with the regularization added once.

        See `Head.loss`. In TRAIN, `create_estimator_spec` writes the loss of each head as the summary
        "loss/<name>".
        """
        losses = self._losses(labels, logits, features, mode)
        return self._merged(losses, regularization_losses)

    def _loss_and_parts(
        self, labels: Any, logits: Any, features: Any, mode: str, regularization_losses: Sequence[Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        if type(self).loss is not MultiHead.loss:  # a subclass's own, which may have no such parts
            return super()._loss_and_parts(labels, logits, features, mode, regularization_losses)
        losses = self._losses(labels, logits, features, mode)
        return self._merged(losses, regularization_losses), losses

    def _merged(self, losses: Mapping[str, Any], regularization_losses: Sequence[Any] | None) -> tf.Tensor:
        with tf.name_scope("merge_losses"):
            weighted = [
                loss * weight for loss, weight in zip(losses.values(), self._head_weights, strict=True)
            ]
            return tf.add_n([*weighted, *(regularization_losses or ())])

    def _losses(self, labels: Any, logits: Any, features: Any, mode: str | None) -> dict[str, Any]:
        """Returns the loss of each head by its name."""
        labels = self._by_name("labels", labels)
        logits_by_name = self._split(logits)
        losses = {}
        for name, head in self._heads.items():
            with tf.name_scope(name):
                losses[name] = head.loss(
                    labels=labels[name], logits=logits_by_name[name], features=features, mode=mode
                )
        return losses

    def _by_name(self, what: str, values: Any) -> Mapping[str, Any]:
        if not isinstance(values, Mapping):
            raise ValueError(f"{what} must be a dict with the keys {list(self._heads)}. Received: {values!r}")
        missing = [name for name in self._heads if name not in values]
        if missing:
            raise ValueError(f"{what} has missing values for head(s): {missing}. Received: {sorted(values)}")
        return values

    def _split(self, logits: Any) -> Mapping[str, Any]:
        """Returns the logits of each head by its name."""
        if isinstance(logits, Mapping):
            return self._by_name("logits", logits)
        logits = tf.convert_to_tensor(logits)
        sizes = [head.logits_dimension for head in self._heads.values()]
        if not logits.shape[-1:].is_compatible_with([sum(sizes)]):
            raise ValueError(
                f"Could not split logits among the heads with the logits dimensions {sizes}: the "
                f"last dimension should be {sum(sizes)}. Received: logits with shape {logits.shape}"
            )
        with tf.name_scope("split_logits"):
            return dict(zip(self._heads, tf.split(logits, sizes, axis=-1), strict=True))

    def predictions(self, logits: Any, keys: Sequence[Any] | None = None) -> dict[Any, Any]:
        """Returns the predictions of all heads by (head name, key).

        Args:
            logits: float32 `[batch_size, logits_dimension]`, or dict of head name to logits.
            keys: Pairs (head name, key) to compute; None computes all.

        Raises:
            ValueError: No head predicts a key, or logits have another shape.
        """
        predictions = {}
        logits_by_name = self._split(logits)
        for name, head in self._heads.items():
            with tf.name_scope(name):
                for key, value in head.predictions(logits_by_name[name]).items():
                    predictions[name, key] = value
        unknown = [key for key in keys or () if key not in predictions]
        if unknown:
            raise ValueError(f"keys must be among {list(predictions)}. Received: keys={keys}")
        return predictions if keys is None else {key: predictions[key] for key in keys}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key: those of all heads, and the loss of each."""
        metrics = {}
        if regularization_losses:
            name = MetricKeys.LOSS_REGULARIZATION
            metrics[self._with_name(name)] = metrics_lib.mean(name)
        for name, head in self._heads.items():
            metrics[f"{MetricKeys.LOSS}/{name}"] = metrics_lib.mean(MetricKeys.LOSS)
            metrics.update(head.metrics())
        return metrics

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
        losses = self._losses(labels, logits, features, mode)
        logits_by_name = self._split(logits)
        weight = batch_weight(logits)
        for name, head in self._heads.items():
            key = f"{MetricKeys.LOSS}/{name}"
            metrics_lib.update(eval_metrics[key], losses[name], sample_weight=weight)
            of_head = {key: eval_metrics[key] for key in head.metrics()}
            head.update_metrics(
                of_head, features=features, logits=logits_by_name[name], labels=labels[name], mode=mode
            )
            eval_metrics.update(of_head)
        if regularization_losses:
            key = self._with_name(MetricKeys.LOSS_REGULARIZATION)
            metrics_lib.update(eval_metrics[key], tf.add_n(list(regularization_losses)))
        return eval_metrics

    def export_outputs(self, predictions: Mapping[Any, Any]) -> dict[str, ExportOutput]:
        """Returns the signatures of all heads, and one of all predictions.

        The default signature of a head has its name, the others are "<head name>/<signature>";
        "predict" has all predictions as "<head name>/<key>". The first head's default is the default.
        """
        outputs: dict[str, ExportOutput] = {}
        for name, head in self._heads.items():
            of_head = {key: value for (owner, key), value in predictions.items() if owner == name}
            for signature, output in head.export_outputs(of_head).items():
                if signature == DEFAULT_SERVING_SIGNATURE:
                    outputs.setdefault(DEFAULT_SERVING_SIGNATURE, output)
                    outputs[name] = output
                else:
                    outputs[f"{name}/{signature}"] = output
        outputs[SignatureKeys.PREDICT] = PredictOutput(predictions)
        return outputs
