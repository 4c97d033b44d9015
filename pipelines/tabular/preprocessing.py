"""The generic `preprocessing_fn`, driven by a `FeaturePlan`."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipelines.tabular.plan import LABEL_KEY, FeaturePlan, LabelPlan

NUMERIC_KEY = "numeric"
BUCKET_KEY = "numeric_bucket"
IS_MISSING_KEY = "numeric_is_missing"
VOCABULARY = "categories"

MISSING_CATEGORY = "[missing]"
MAX_ABS_Z_SCORE = 10.0  # outliers beyond say nothing more to the DNN
_OUTER_WHITE_SPACE = r"^[\pZ\s\v]+|[\pZ\s\v]+$"  # Unicode's too, as where columns are profiled
_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """Returns the transformed features and label of a batch.

    Columns of a kind go through one analyzer together: each analyzer is a Beam computation of its
    own, and they would take most of the time.

    Args:
      inputs: Tensors by column; int64, float32 or string. Sparse of shape [batch_size, <=1], or
        dense of shape [batch_size, 1] or [batch_size] where the schema fixes the shape.
      custom_config: Holds the plan.

    Returns:
      `numeric` (z-scores, float32, [batch_size, num_numeric]), `numeric_bucket` (ids that no two
      columns share, int64, same shape), `numeric_is_missing` (float32, [batch_size, columns that
      have missing values]), `category_<position>` (ids, int64, [batch_size]) and `label` (class
      names as string or numbers as float32, [batch_size]).
    """
    plan = FeaturePlan.from_custom_config(custom_config)
    inputs = {name: _sparse(values) for name, values in inputs.items()}
    outputs = {LABEL_KEY: _label(plan.label, inputs[plan.label.column])}
    if plan.numeric:
        outputs.update(_numeric_outputs(plan, inputs))
    if plan.categorical:
        outputs.update(_categorical_outputs(plan, inputs))
    return outputs


def _sparse(values: Any) -> Any:
    """Returns one value of each example as a sparse tensor of shape [batch_size, <=1]."""
    if isinstance(values, tf.SparseTensor):
        return values
    flat = tf.reshape(values, [-1])
    size = tf.size(flat, tf.int64)
    rows = tf.range(size, dtype=tf.int64)
    return tf.SparseTensor(tf.stack([rows, tf.zeros_like(rows)], axis=1), flat, [size, 1])


def _numeric_outputs(plan: FeaturePlan, inputs: dict[str, Any]) -> dict[str, Any]:
    columns = [_dense(_as_numbers(inputs[part.column]), float("nan")) for part in plan.numeric]
    centered = tf.stack(columns, axis=1) - [part.center for part in plan.numeric]
    is_known = tf.math.is_finite(centered)
    filled = tf.where(is_known, centered, tf.zeros_like(centered))
    terms = tf.concat([tf.cast(is_known, tf.float64), filled, filled**2], axis=1)
    count, total, squares = tf.split(tft.sum(terms, reduce_instance_dims=False), 3)
    count = tf.maximum(count, 1.0)
    mean = total / count
    stddev = tf.sqrt(tf.maximum(squares / count - mean**2, 0.0))
    scores = tf.math.divide_no_nan(filled - mean, stddev)
    scores = tf.where(is_known, scores, tf.zeros_like(scores))  # a missing value = the mean
    scores = tf.clip_by_value(scores, -MAX_ABS_Z_SCORE, MAX_ABS_Z_SCORE)
    outputs = {
        NUMERIC_KEY: tf.cast(scores, tf.float32),
        BUCKET_KEY: _bucket_ids(plan, tf.cast(centered, tf.float32), is_known),
    }
    with_missing = [index for index, part in enumerate(plan.numeric) if part.has_missing]
    if with_missing:
        is_missing = tf.gather(tf.logical_not(is_known), with_missing, axis=1)
        outputs[IS_MISSING_KEY] = tf.cast(is_missing, tf.float32)
    return outputs


def _bucket_ids(plan: FeaturePlan, numbers: Any, is_known: Any) -> Any:
    """Returns quantile buckets; each column has its own range of ids, whose last means missing."""
    boundaries = tft.quantiles(
        numbers, plan.num_buckets, epsilon=0.01, reduce_instance_dims=False
    )  # [num_numeric, num_buckets - 1]
    is_above = tf.expand_dims(numbers, 2) >= tf.expand_dims(boundaries, 0)
    buckets = tf.reduce_sum(tf.cast(is_above, tf.int64), axis=2)
    buckets = tf.where(
        is_known, buckets, tf.fill(tf.shape(buckets), tf.cast(plan.num_buckets, tf.int64))
    )
    offsets = tf.range(len(plan.numeric), dtype=tf.int64) * (plan.num_buckets + 1)
    return buckets + offsets


def _categorical_outputs(plan: FeaturePlan, inputs: dict[str, Any]) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for index, part in enumerate(plan.categorical):
        text = _dense(_as_text(inputs[part.column]), MISSING_CATEGORY)
        if part.hash_buckets is not None:
            outputs[category_key(index)] = tft.hash_strings(text, part.hash_buckets)
        else:  # prefixed, so that columns can share one vocabulary
            words[category_key(index)] = tf.strings.join([f"{index}=", text])
    if words:
        ids = tft.compute_and_apply_vocabulary(
            tf.stack(list(words.values()), axis=1), num_oov_buckets=1, vocab_filename=VOCABULARY
        )
        for position, key in enumerate(words):
            outputs[key] = ids[:, position]
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
        text = _trim(values)
        is_number = tf.strings.regex_full_match(text, _NUMBER)
        values = tf.strings.to_number(tf.where(is_number, text, "nan"), tf.float64)
    values = tf.cast(values, tf.float64)
    return tf.sparse.retain(_with_values(raw, values), tf.math.is_finite(values))


def _as_text(raw: Any) -> Any:
    """Returns the values of a sparse tensor as trimmed text."""
    values = raw.values
    text = _trim(values) if values.dtype == tf.string else tf.strings.as_string(values)
    return tf.sparse.retain(_with_values(raw, text), tf.not_equal(text, ""))


def _trim(text: Any) -> Any:
    return tf.strings.regex_replace(text, _OUTER_WHITE_SPACE, "")


def _with_values(sparse: Any, values: Any) -> Any:
    return tf.SparseTensor(sparse.indices, values, sparse.dense_shape)


def _dense(sparse: Any, default: Any) -> Any:
    """Returns shape [batch_size]: the value of each example, or the default."""
    one_each = tf.SparseTensor(sparse.indices, sparse.values, [sparse.dense_shape[0], 1])
    default = tf.cast(default, sparse.values.dtype) if not isinstance(default, str) else default
    return tf.squeeze(tf.sparse.to_dense(one_each, default), axis=1)


def category_key(index: int) -> str:
    """Returns the name of the transformed feature of the plan's categorical column `index`."""
    return f"category_{index}"
