"""The private attributes of tf.estimator's heads, for the subclasses in programs that use them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core.heads.base import Head
from estimator_core.heads.weighted import WeightedHead


def provide_attributes() -> None:
    """Gives them to our heads."""
    setattr(Head, "_summary_key", _summary_key)  # noqa: B010
    for method in (_processed_labels, _unweighted_loss_and_weights):
        setattr(WeightedHead, method.__name__, method)
    setattr(WeightedHead, "_label_vocabulary", _LabelVocabularyOf())  # noqa: B010


class _LabelVocabularyOf:
    """The labels of a classifier's head as its attribute; an attribute of the instance hides it."""

    def __get__(self, head: Any, owner: type) -> Any:
        vocabulary = getattr(head, "_vocabulary", None)
        return None if vocabulary is None else vocabulary.labels


def _processed_labels(head: WeightedHead, logits: Any, labels: Any) -> tf.Tensor:
    return head.processed_labels(labels, logits)


def _unweighted_loss_and_weights(
    head: WeightedHead, logits: tf.Tensor, labels: tf.Tensor, features: Any
) -> tuple[tf.Tensor, Any]:
    """Returns the losses of processed labels, `[batch_size, loss_dimension]`, and their weights."""
    losses = head.losses_of_processed(labels, logits, features)
    return losses, head.example_weights(features, losses)


def _summary_key(head: Head, key: str) -> str:
    return f"{key}/{head.name}" if head.name else key
