"""Predictions of all classifiers: class ids and class names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core.heads.label_vocabulary import LabelVocabulary
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


def all_class_names(
    logits: tf.Tensor, n_classes: int, vocabulary: LabelVocabulary | None
) -> tf.Tensor:
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
