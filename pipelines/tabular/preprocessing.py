"""The generic `preprocessing_fn`, driven by a `TabularPlan`."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipelines.tabular.plan import LABEL_KEY, LabelPlan, NumericFeature, TabularPlan

MISSING_CATEGORY = "[missing]"
MAX_ABS_Z_SCORE = 10.0  # outliers beyond say nothing more to the DNN
_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """Returns the transformed features and label of a batch, all of shape [batch_size].

    Args:
      inputs: Sparse tensors of shape [batch_size, <=1] by column; int64, float32 or string.
      custom_config: Holds the plan.

    Returns:
      `<key>` (z-score, float32), `<key>_bucket` (int64; the last id means missing) and
      `<key>_is_missing` (float32) of a numeric feature, `<key>` (id, int64) of a categorical one,
      and `label` (class name as string, or float32).
    """
    plan = TabularPlan.from_custom_config(custom_config)
    outputs: dict[str, Any] = {}
    for feature in plan.numeric:
        outputs.update(_numeric_outputs(feature, inputs[feature.column]))
    for category in plan.categorical:
        text = _dense(_as_text(inputs[category.column]), MISSING_CATEGORY)
        if category.hash_buckets is not None:
            outputs[category.key] = tft.hash_strings(text, category.hash_buckets)
        else:
            outputs[category.key] = tft.compute_and_apply_vocabulary(
                text, num_oov_buckets=1, vocab_filename=category.key
            )
    outputs[LABEL_KEY] = _label(plan.label, inputs[plan.label.column])
    return outputs


def _numeric_outputs(feature: NumericFeature, raw: Any) -> dict[str, Any]:
    numbers = _as_numbers(raw)
    mean, stddev = tft.mean(numbers), tf.sqrt(tft.var(numbers))
    centered = numbers.values - mean
    scores = tf.where(
        stddev > 0, centered / tf.where(stddev > 0, stddev, 1.0), tf.zeros_like(centered)
    )
    scores = tf.clip_by_value(tf.cast(scores, tf.float32), -MAX_ABS_Z_SCORE, MAX_ABS_Z_SCORE)
    buckets = tft.bucketize(numbers, feature.num_buckets)
    outputs = {
        feature.key: _dense(_with_values(numbers, scores), 0.0),  # a missing value = the mean
        f"{feature.key}_bucket": _dense(buckets, feature.num_buckets),
    }
    if feature.has_missing:
        present = _dense(_with_values(numbers, tf.ones_like(scores)), 0.0)
        outputs[f"{feature.key}_is_missing"] = 1.0 - present
    return outputs


def _label(label: LabelPlan, raw: Any) -> Any:
    """Returns the class name (string) or the number (float32) of each example."""
    if label.problem_type == "regression":
        return tf.cast(_dense(_as_numbers(raw), float("nan")), tf.float32)
    if label.values == "number":
        numbers = _as_numbers(raw)
        return _dense(
            _with_values(numbers, tf.strings.as_string(tf.cast(numbers.values, tf.int64))), ""
        )
    return _dense(_as_text(raw), "")


def _as_numbers(raw: Any) -> Any:
    """Returns the finite numbers of a sparse tensor as float64; everything else is missing."""
    values = raw.values
    if values.dtype == tf.string:
        text = tf.strings.strip(values)
        is_number = tf.strings.regex_full_match(text, _NUMBER)
        values = tf.strings.to_number(tf.where(is_number, text, "nan"), tf.float64)
    values = tf.cast(values, tf.float64)
    return tf.sparse.retain(_with_values(raw, values), tf.math.is_finite(values))


def _as_text(raw: Any) -> Any:
    """Returns the values of a sparse tensor as trimmed text."""
    values = raw.values
    text = tf.strings.strip(values) if values.dtype == tf.string else tf.strings.as_string(values)
    return tf.sparse.retain(_with_values(raw, text), tf.not_equal(text, ""))


def _with_values(sparse: Any, values: Any) -> Any:
    return tf.SparseTensor(sparse.indices, values, sparse.dense_shape)


def _dense(sparse: Any, default: Any) -> Any:
    """Returns shape [batch_size]: the value of each example, or the default."""
    one_each = tf.SparseTensor(sparse.indices, sparse.values, [sparse.dense_shape[0], 1])
    default = tf.cast(default, sparse.values.dtype) if not isinstance(default, str) else default
    return tf.squeeze(tf.sparse.to_dense(one_each, default), axis=1)
