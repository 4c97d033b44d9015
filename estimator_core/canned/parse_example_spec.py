"""Parsing specs of the tf.Examples that a canned Estimator trains on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads.checks import check_weight_column


def classifier_parse_example_spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dtype: tf.DType = tf.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the parsing spec of a classifier's features, label and weight.

    Example:
        >>> columns = [tf.feature_column.numeric_column("age")]
        >>> spec = classifier_parse_example_spec(columns, label_key="clicked")
        >>> features = tf.io.parse_example(serialized, spec)  # doctest: +SKIP
        >>> labels = features.pop("clicked")  # doctest: +SKIP

    Args:
        feature_columns: The feature columns.
        label_key: Feature name of the label, which has the shape `[1]`.
        label_dtype: int64 for class ids, string for a label vocabulary.
        label_default: Label of examples that lack it; None makes that an error.
        weight_column: Feature name or numeric column of the example weights, or None.

    Raises:
        ValueError: A column is not a feature column, `weight_column` is neither a name nor a numeric column,
            or a feature has the name of the label or the weight.

    Source: `tf.estimator.classifier_parse_example_spec`.
    """
    label = tf.io.FixedLenFeature((1,), label_dtype, label_default)
    return _parse_example_spec(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dtype: tf.DType = tf.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the parsing spec of a regressor's features, label and weight.

    Args:
        feature_columns: The feature columns.
        label_key: Feature name of the label, which has the shape `[label_dimension]`.
        label_dtype: Dtype of the label.
        label_default: Label of examples that lack it; None makes that an error.
        label_dimension: Number of values in a label.
        weight_column: Feature name or numeric column of the example weights, or None.

    Raises:
        ValueError: A column is not a feature column, `weight_column` is neither a name nor a numeric column,
            or a feature has the name of the label or the weight.

    Source: `tf.estimator.regressor_parse_example_spec`.
    """
    label = tf.io.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _parse_example_spec(feature_columns, label_key, label, weight_column)


def _parse_example_spec(
    feature_columns: Sequence[Any], label_key: str, label: Any, weight_column: Any
) -> dict[str, Any]:
    spec = dict(tf.feature_column.make_parse_example_spec(feature_columns))
    _add(spec, "label", label_key, label)
    try:
        weight_column = check_weight_column(weight_column)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column)
    if weight_column is not None:
        weight = tf.io.FixedLenFeature((1,), weight_column.dtype)
        _add(spec, "weight_column", weight_column.key, weight)
    return spec


def _add(spec: dict[str, Any], what: str, key: str, feature: Any) -> None:
    if key in spec:
        raise ValueError(
            f"{what} should not be used as feature. Received: {what} {key!r}, features {list(spec)}"
        )
    spec[key] = feature
