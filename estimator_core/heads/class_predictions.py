"""Predictions of all classifiers: class ids and class names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE
from estimator_core.spec.export_outputs import ClassificationOutput, ExportOutput, PredictOutput
from estimator_core.spec.keys import PredictionKeys, SignatureKeys


def class_names(class_ids: tf.Tensor, vocabulary: LabelVocabulary | None) -> tf.Tensor:
    """Returns the names of class ids: vocabulary words, or the ids as strings."""
    if vocabulary is not None:
        return vocabulary.strings(class_ids)
    return tf.strings.as_string(class_ids, name="str_classes")


def all_class_ids(logits: tf.Tensor, n_classes: int) -> tf.Tensor:
    """Returns the ids 0 to n_classes - 1 for each example, int32 `[batch_size, n_classes]`."""
    return tf.tile(tf.range(n_classes)[tf.newaxis, :], [tf.shape(logits)[0], 1])


def all_class_names(logits: tf.Tensor, n_classes: int, vocabulary: LabelVocabulary | None) -> tf.Tensor:
    """Returns the names of all classes for each example, string `[batch_size, n_classes]`."""
    names = class_names(tf.range(n_classes), vocabulary)
    return tf.tile(names[tf.newaxis, :], [tf.shape(logits)[0], 1])


def classification_outputs(
    predictions: Mapping[str, Any], n_classes: int, vocabulary: LabelVocabulary | None
) -> dict[str, ExportOutput]:
    """Returns the classification (the default) and predict signatures.

    A classification has the scores of all classes, and their names in the same order.
    """
    scores = predictions[PredictionKeys.PROBABILITIES]
    classes = all_class_names(scores, n_classes, vocabulary)
    classification = ClassificationOutput(scores=scores, classes=classes)
    return {
        DEFAULT_SERVING_SIGNATURE: classification,
        SignatureKeys.CLASSIFICATION: classification,
        SignatureKeys.PREDICT: PredictOutput(predictions),
    }


def computed(compute: Mapping[str, Callable[[], Any]], keys: Any) -> dict[str, Any]:
    """Returns the predictions of `keys`, or all when None; see `wanted`."""
    return {key: compute[key]() for key in wanted(keys, tuple(compute))}


def wanted(keys: Any, valid_keys: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the prediction keys to compute: `keys`, or all when None."""
    if keys is None:
        return valid_keys
    unknown = [key for key in keys if key not in valid_keys]
    if unknown:
        raise ValueError(f"keys must be among {valid_keys}. Received: keys={list(keys)}")
    return tuple(keys)


class LabelVocabulary:
    """An ordered list of label strings; the id of a label is its index in the list."""

    def __init__(self, labels: Sequence[str], n_classes: int):
        if not isinstance(labels, (list, tuple)):
            raise ValueError(f"label_vocabulary should be a list or a tuple. Received: {labels!r}")
        if len(labels) != n_classes:
            raise ValueError(
                f'"label_vocabulary" does not have "n_classes" items. Received: '
                f"len(label_vocabulary)={len(labels)}, n_classes={n_classes}, "
                f"label_vocabulary={labels}"
            )
        if len(set(labels)) != len(labels):
            raise ValueError(f"label_vocabulary must not repeat a label. Received: {labels}")
        self.labels = tuple(labels)

    def ids(self, strings: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of string labels, same shape; -1 for a string not in the list."""
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                keys=tf.constant(self.labels, tf.string), values=tf.range(len(self.labels), dtype=tf.int64)
            ),
            default_value=-1,
        )
        return table.lookup(strings)

    def strings(self, ids: Any) -> tf.Tensor:
        """Returns the labels of class ids, same shape."""
        return tf.gather(tf.constant(self.labels, tf.string), ids)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.labels[:10]))  # labels may be bytes
        return f"[{shown}{', ...' if len(self.labels) > 10 else ''}]"
