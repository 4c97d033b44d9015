"""Predictions of all classifiers: class ids and class names."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core.heads.label_vocabulary import LabelVocabulary
from estimator_core.spec.export_outputs import ClassificationOutput


def class_names(class_ids: tf.Tensor, vocabulary: LabelVocabulary | None) -> tf.Tensor:
    """Returns the names of class ids: vocabulary words, or the ids as strings."""
    if vocabulary is not None:
        return vocabulary.strings(class_ids)
    return tf.strings.as_string(class_ids, name="str_classes")


def all_class_ids(logits: tf.Tensor, n_classes: int) -> tf.Tensor:
    """Returns the ids 0 to n_classes - 1 for each example, int32 `[batch_size, n_classes]`."""
    return tf.tile(tf.range(n_classes)[tf.newaxis, :], [tf.shape(logits)[0], 1])


def all_class_names(
    logits: tf.Tensor, n_classes: int, vocabulary: LabelVocabulary | None
) -> tf.Tensor:
    """Returns the names of all classes for each example, string `[batch_size, n_classes]`."""
    names = class_names(tf.range(n_classes), vocabulary)
    return tf.tile(names[tf.newaxis, :], [tf.shape(logits)[0], 1])


def classification_output(
    probabilities: Any, n_classes: int, vocabulary: LabelVocabulary | None
) -> ClassificationOutput:
    """Returns the classify signature: the scores of all classes, and their names in the same order."""
    return ClassificationOutput(
        scores=probabilities, classes=all_class_names(probabilities, n_classes, vocabulary)
    )


def wanted(keys: Any, valid_keys: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the prediction keys to compute: `keys`, or all when None.

    Raises:
        ValueError: The head does not predict a key.
    """
    if keys is None:
        return valid_keys
    unknown = [key for key in keys if key not in valid_keys]
    if unknown:
        raise ValueError(f"keys must be among {valid_keys}. Received: keys={list(keys)}")
    return tuple(keys)
