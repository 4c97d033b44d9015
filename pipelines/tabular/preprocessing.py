"""Generic `preprocessing_fn`, driven by a `FeaturePlan`."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipelines.data.formats.date_format import (
    SECS_PER_DAY,
    DateFormat,
    month_of,
    weekday_of,
)
from pipelines.data.formats.number_format import NumberFormat
from pipelines.tabular.cell_reading import read_numbers, read_times, trim
from pipelines.tabular.plan import (
    GROUP_KEY,
    LABEL_KEY,
    CategoricalFeature,
    FeaturePlan,
    LabelPlan,
    NumericFeature,
    TextFeature,
)

NUMERIC_KEY = "numeric"
BUCKET_KEY = "numeric_bucket"
IS_MISSING_KEY = "numeric_is_missing"
VOCABULARY = "categories"

MISSING_CATEGORY = "[missing]"
_NUM_GROUPS = 2**40
_BETWEEN_WORDS = r"[^\pL\pN]+"


def preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """Returns the transformed features and label of a batch.

    Columns of the same kind share one analyzer, because each analyzer is a separate Beam computation, and
    these would take most of the time.

    Args:
      inputs: Tensors by column; int64, float32 or string. Sparse of shape [batch_size, <=1], or
        dense of shape [batch_size, 1] or [batch_size] where the schema fixes the shape.
      custom_config: Dict with the plan.

    Returns:
      `numeric` (z-scores, NaN for a missing value, float32, [batch_size, num_numeric]),
      `numeric_bucket` (ids that no two columns share, int64, same shape; where the plan has buckets),
      `numeric_is_missing` (float32, [batch_size, columns that have missing values]),
      `category_<position>` (ids, int64, [batch_size]), `text_<position>` (ids of words and pairs of
      words, sparse int64, [batch_size, None]), `held_out_group` (int64, [batch_size], where the plan has
      one) and `label` (class names as string or numbers as float32, [batch_size]).
    """
    plan = FeaturePlan.from_custom_config(custom_config)
    inputs = {name: _sparse(values) for name, values in inputs.items()}
    outputs = {LABEL_KEY: _label(plan.label, inputs[plan.label.column])}
    if plan.numeric:
        outputs.update(_numeric_outputs(plan, inputs))
    if plan.categorical:
        outputs.update(_categorical_outputs(plan, inputs))
    for index, text in enumerate(plan.text):
        outputs[text_key(index)] = _ngram_ids(text, inputs[text.column])
    if plan.group:
        outputs[GROUP_KEY] = _group(inputs[plan.group])
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
    columns = [_dense(_number(part, inputs), float("nan")) for part in plan.numeric]
    centered = tf.stack(columns, axis=1) - [part.center for part in plan.numeric]
    is_known = tf.math.is_finite(centered)
    filled = tf.where(is_known, centered, tf.zeros_like(centered))
    terms = tf.concat([tf.cast(is_known, tf.float64), filled, filled**2], axis=1)
    count, total, squares = tf.split(tft.sum(terms, reduce_instance_dims=False), 3)
    count = tf.maximum(count, 1.0)
    mean = total / count
    stddev = tf.sqrt(tf.maximum(squares / count - mean**2, 0.0))
    scores = tf.math.divide_no_nan(filled - mean, stddev)
    scores = tf.where(
        is_known, scores, tf.fill(tf.shape(scores), tf.cast(float("nan"), tf.float64))
    )
    outputs = {NUMERIC_KEY: tf.cast(scores, tf.float32)}
    if plan.num_buckets:
        outputs[BUCKET_KEY] = _bucket_ids(plan, tf.cast(centered, tf.float32), is_known)
    with_missing = [index for index, part in enumerate(plan.numeric) if part.has_missing]
    if with_missing:
        is_missing = tf.gather(tf.logical_not(is_known), with_missing, axis=1)
        outputs[IS_MISSING_KEY] = tf.cast(is_missing, tf.float32)
    return outputs


def _bucket_ids(plan: FeaturePlan, numbers: Any, is_known: Any) -> Any:
    """Returns quantile buckets; each column has its own range of ids, the last of which means missing."""
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
        text = _dense(_category(part, inputs[part.column]), MISSING_CATEGORY)
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
        return tf.cast(_dense(_as_numbers(raw, label.decimal), float("nan")), tf.float32)
    if label.values == "number":
        numbers = _as_numbers(raw)
        return _dense(
            _with_values(numbers, tf.strings.as_string(tf.cast(numbers.values, tf.int64))), ""
        )
    return _dense(_as_text(raw), "")


def _number(part: NumericFeature, inputs: dict[str, Any]) -> Any:
    """Returns the numbers of a column, or the days since 1970 of its dates, as sparse float64."""
    raw = inputs[part.column]
    if part.date is None:
        return _as_numbers(raw, part.decimal)
    is_valid, _, secs = read_times(raw.values, DateFormat(part.date))
    days = tf.cast(secs, tf.float64) / SECS_PER_DAY
    if part.newest is not None:
        days = tf.minimum(days, tf.constant(part.newest, tf.float64))
    return tf.sparse.retain(_with_values(raw, days), is_valid)


def _category(part: CategoricalFeature, raw: Any) -> Any:
    """Returns the categories of a sparse tensor as text."""
    if part.date is not None:
        is_valid, local_secs, _ = read_times(raw.values, DateFormat(part.date))
        days = local_secs // SECS_PER_DAY
        value = {
            "month": lambda: month_of(days),
            "weekday": lambda: weekday_of(days),
            "hour": lambda: local_secs % SECS_PER_DAY // 3_600,
        }[part.part or "month"]()
        return tf.sparse.retain(_with_values(raw, tf.strings.as_string(value)), is_valid)
    text = _as_text(raw)
    if part.words is None:
        return text
    folded = tf.strings.lower(text.values, encoding="utf-8")
    for word, name in zip(part.words, ("true", "false"), strict=True):
        folded = tf.where(tf.equal(folded, word), name, folded)
    return _with_values(text, folded)


def _group(raw: Any) -> Any:
    """Returns the number of each row's group, int64 of shape [batch_size]; -1 without a group."""
    text = _as_text(raw)
    return _dense(_with_values(text, tf.strings.to_hash_bucket_fast(text.values, _NUM_GROUPS)), -1)


def _ngram_ids(part: TextFeature, raw: Any) -> Any:
    """Returns hashed words, and pairs of words, sparse int64 of shape [batch_size, None]."""
    text = tf.strings.lower(_dense(_as_text(raw), ""), encoding="utf-8")
    words = tf.strings.split(tf.strings.regex_replace(text, _BETWEEN_WORDS, " ")).to_sparse()
    sizes = (1, 2) if part.has_pairs else (1, 1)
    return tft.hash_strings(tft.ngrams(words, sizes, separator=" "), part.hash_buckets)


def _as_numbers(raw: Any, decimal: Any = None) -> Any:
    """Returns the finite numbers of a sparse tensor as float64; everything else is missing."""
    values = read_numbers(raw.values, None if decimal is None else NumberFormat(decimal))
    return tf.sparse.retain(_with_values(raw, values), tf.math.is_finite(values))


def _as_text(raw: Any) -> Any:
    """Returns the values of a sparse tensor as trimmed text."""
    values = raw.values
    text = trim(values) if values.dtype == tf.string else tf.strings.as_string(values)
    return tf.sparse.retain(_with_values(raw, text), tf.not_equal(text, ""))


def _with_values(sparse: Any, values: Any) -> Any:
    return tf.SparseTensor(sparse.indices, values, sparse.dense_shape)


def _dense(sparse: Any, default: Any) -> Any:
    """Returns the value of each example, or the default, of shape [batch_size]."""
    one_each = tf.SparseTensor(sparse.indices, sparse.values, [sparse.dense_shape[0], 1])
    default = tf.cast(default, sparse.values.dtype) if not isinstance(default, str) else default
    return tf.squeeze(tf.sparse.to_dense(one_each, default), axis=1)


def category_key(index: int) -> str:
    """Returns the name of the transformed feature of the plan's categorical column `index`."""
    return f"category_{index}"


def text_key(index: int) -> str:
    """Returns the name of the transformed feature of the plan's text column `index`."""
    return f"text_{index}"
