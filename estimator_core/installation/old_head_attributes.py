"""The private attributes of tf.estimator's heads, for the subclasses in programs that use them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core.heads.base import Head
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.tpu import TPUEstimatorSpec


def provide_attributes() -> None:
    """Adds the private attributes to `Head` and `WeightedHead`."""
    setattr(Head, "_summary_key", Head._with_name)  # noqa: B010, SLF001
    for method in (_processed_labels, _unweighted_loss_and_weights, _create_tpu_estimator_spec):
        setattr(WeightedHead, method.__name__, method)
    setattr(WeightedHead, "_label_vocabulary", _LabelVocabularyOf())  # noqa: B010


class _LabelVocabularyOf:
    """Descriptor of `_label_vocabulary`: the label strings, or None."""

    def __get__(self, head: Any, owner: type) -> Any:
        vocabulary = getattr(head, "_vocabulary", None)
        return None if vocabulary is None else vocabulary.labels


def _processed_labels(head: WeightedHead, logits: Any, labels: Any) -> tf.Tensor:
    return head.processed_labels(labels, logits)


def _unweighted_loss_and_weights(
    head: WeightedHead, logits: tf.Tensor, labels: tf.Tensor, features: Any
) -> tuple[tf.Tensor, Any]:
    """Returns the losses of processed labels, `[batch_size, loss_dimension]`, and their weights."""
    losses = head.unreduced_losses(labels, logits, features)
    return losses, head.example_weights(features, losses)


def _create_tpu_estimator_spec(
    head: WeightedHead, features: Any, mode: str, logits: Any, *args: Any, **kwargs: Any
) -> TPUEstimatorSpec:
    """Returns the head's spec as one of TPUs; the other arguments are those of `create_estimator_spec`."""
    make_spec: Any = head._own_spec  # noqa: SLF001
    spec = make_spec(features, mode, logits, *args, with_metric_fn=True, **kwargs)
    metrics = spec.eval_metric_ops
    return TPUEstimatorSpec(
        mode,
        predictions=spec.predictions,
        loss=spec.loss,
        train_op=spec.train_op,
        eval_metrics=(metrics.function, metrics.tensors) if isinstance(metrics, MetricFn) else None,
        export_outputs=spec.export_outputs,
    )


# `create_estimator_spec` calls only a subclass's, not this one.
setattr(_create_tpu_estimator_spec, "is_provided", True)  # noqa: B010
