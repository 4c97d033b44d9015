"""Feature columns of the generic models, for the outputs of `preprocessing_fn`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_transform as tft

from pipelines.tabular.plan import MISSING_CATEGORY, FeaturePlan
from pipelines.tabular.preprocessing import (
    BUCKET_KEY,
    CATEGORY_KEY,
    IS_MISSING_KEY,
    NUMERIC_KEY,
    VOCABULARY,
    category_key,
    list_key,
    text_key,
    text_mean_key,
)

MAX_ABS_Z_SCORE = 10.0  # larger outliers carry no further information
MAX_INDICATORS = 64  # of a column; rarer values are numbers to trees

_TEXT_DIMENSION = 16
_MATRIX_DIMENSION = 64  # of the sum of many embeddings


def linear_columns(plan: FeaturePlan, transform: tft.TFTransformOutput) -> list[Any]:
    """Returns the columns of a linear model: numbers, their quantile buckets, categories and words."""
    columns = tf.feature_column
    result: list[Any] = []
    if plan.numeric:
        if plan.num_buckets:
            num_ids = len(plan.numeric) * (plan.num_buckets + 1)
            result.append(columns.categorical_column_with_identity(BUCKET_KEY, num_ids))
        result += _numbers(plan)
    result += _categories(plan, transform)
    return result + _words(plan) + _lists(plan)


def dnn_columns(plan: FeaturePlan, transform: tft.TFTransformOutput) -> list[Any]:
    """Returns the columns of a DNN: numbers, and embeddings of categories and words."""
    embedding = tf.feature_column.embedding_column
    result = _numbers(plan) if plan.numeric else []
    for ids, dimension in zip(_categories(plan, transform), _embedding_dimensions(plan), strict=True):
        # The first layer sees the sum of the categories' embeddings, as if each had separate inputs.
        combiner = "sqrtn" if ids.key == CATEGORY_KEY else "mean"
        result.append(embedding(ids, dimension, combiner))
    for ids in _words(plan):
        result.append(embedding(ids, dimension=_TEXT_DIMENSION, combiner="sqrtn"))
    return result + _lists(plan)


def tree_columns(
    plan: FeaturePlan,
    transform: tft.TFTransformOutput,
    means: npt.NDArray[np.float32] | None = None,
    num_text_means: int = 0,
) -> list[Any]:
    """Returns the columns of trees: numbers, which may be missing, categories, and means of texts.

    A part of a date, such as the hour, is a number. For other categories, the most frequent values are
    indicators, and the means of the label are numbers. Without means, a category with more values than
    indicators is also a number, the rank of its frequency among all words; so is a hashed category.
    """
    columns = tf.feature_column
    result: list[Any] = []
    if plan.numeric:
        result.append(columns.numeric_column(NUMERIC_KEY, shape=(len(plan.numeric),)))
    if num_text_means:
        texts = range(len(plan.text))
        result += [columns.numeric_column(text_mean_key(at), (num_text_means,)) for at in texts]
    result += _lists(plan)
    # The words of all categories by id, each as `<position>=<word>`.
    words: list[bytes] = list(transform.vocabulary_by_name(VOCABULARY)) if plan.words else []
    ids_by_prefix: dict[bytes, list[int]] = {}
    for number, word in enumerate(words):
        ids_by_prefix.setdefault(word.partition(b"=")[0] + b"=", []).append(number)
    if plan.has_word_matrix:
        result += _matrix_columns(plan, words, ids_by_prefix, means)
    for index, part in enumerate(plan.categorical):
        if plan.has_word_matrix and part.hash_buckets is None:
            continue
        key = category_key(index)
        prefix = f"{index}=".encode()
        ids = ids_by_prefix.get(prefix, [])
        if part.part is not None:
            values: npt.NDArray[np.float32] = np.full(len(words) + 1, np.nan, np.float32)
            values[ids] = _parts_of_dates(words, ids)
            result.append(columns.numeric_column(key, normalizer_fn=_looked_up(values)))
            continue
        if means is not None and ids:
            result.append(columns.numeric_column(key, normalizer_fn=_looked_up(means)))
        elif part.hash_buckets is not None or len(ids) > MAX_INDICATORS:
            result.append(columns.numeric_column(key))
        if ids:
            frequent = columns.categorical_column_with_vocabulary_list(
                key, ids[:MAX_INDICATORS], dtype=tf.int64
            )
            result.append(columns.indicator_column(frequent))
    return result


def _matrix_columns(
    plan: FeaturePlan,
    words: Sequence[bytes],
    ids_by_prefix: Mapping[bytes, list[int]],
    means: npt.NDArray[np.float32] | None,
) -> list[Any]:
    """Returns the columns of trees for the matrix of categories: what single columns have, side by side.

    In the column of numbers, a category without a number and an unknown word are NaN.
    """
    columns = tf.feature_column
    values: npt.NDArray[np.float32] = np.full(len(words) + 1, np.nan, np.float32)
    frequent: list[int] = []
    for index in plan.words:
        ids = ids_by_prefix.get(f"{index}=".encode(), [])
        if plan.categorical[index].part is not None:
            values[ids] = _parts_of_dates(words, ids)
            continue
        if means is not None:
            values[ids] = means[ids]
        elif len(ids) > MAX_INDICATORS:
            values[ids] = ids
        frequent += ids[:MAX_INDICATORS]
    shape = (len(plan.words),)
    result = [columns.numeric_column(CATEGORY_KEY, shape, normalizer_fn=_looked_up(values))]
    if frequent:
        frequent_ids = columns.categorical_column_with_vocabulary_list(CATEGORY_KEY, frequent, dtype=tf.int64)
        result.append(columns.indicator_column(frequent_ids))
    return result


def _parts_of_dates(words: Sequence[bytes], ids: Sequence[int]) -> list[float]:
    """Returns the numbers that the words of some ids are; NaN for a missing one."""
    parts = (words[number].partition(b"=")[2] for number in ids)
    return [float("nan" if word == MISSING_CATEGORY.encode() else word) for word in parts]


def keys_of_words(plan: FeaturePlan) -> tuple[str, ...]:
    """Returns the features that are ids of the vocabulary, except for parts of dates."""
    if plan.has_word_matrix:
        return (CATEGORY_KEY,)
    return tuple(
        category_key(index)
        for index, part in enumerate(plan.categorical)
        if part.hash_buckets is None and part.part is None
    )


def _numbers(plan: FeaturePlan) -> list[Any]:
    """Returns the columns of z-scores, where missing ones are 0, and of flags for missing ones."""
    numeric_column = tf.feature_column.numeric_column
    result = [numeric_column(NUMERIC_KEY, shape=(len(plan.numeric),), normalizer_fn=_bounded)]
    num_missing = sum(part.has_missing for part in plan.numeric)
    if num_missing:
        result.append(numeric_column(IS_MISSING_KEY, shape=(num_missing,)))
    return result


def _looked_up(values: Any) -> Callable[[Any], Any]:
    return lambda ids: tf.gather(tf.constant(values, tf.float32), ids)


def _bounded(scores: Any) -> Any:
    scores = tf.where(tf.math.is_nan(scores), tf.zeros_like(scores), scores)
    return tf.clip_by_value(scores, -MAX_ABS_Z_SCORE, MAX_ABS_Z_SCORE)


def _categories(plan: FeaturePlan, transform: tft.TFTransformOutput) -> list[Any]:
    identity = tf.feature_column.categorical_column_with_identity
    num_words = transform.vocabulary_size_by_name(VOCABULARY) + 1 if plan.words else 0
    result = [
        identity(category_key(index), part.hash_buckets or num_words)
        for index, part in enumerate(plan.categorical)
        if part.hash_buckets is not None or not plan.has_word_matrix
    ]
    return [*result, identity(CATEGORY_KEY, num_words)] if plan.has_word_matrix else result


def _words(plan: FeaturePlan) -> list[Any]:
    identity = tf.feature_column.categorical_column_with_identity
    return [identity(text_key(index), text.hash_buckets) for index, text in enumerate(plan.text)]


def _lists(plan: FeaturePlan) -> list[Any]:
    numeric_column = tf.feature_column.numeric_column
    return [
        numeric_column(list_key(index), shape=(len(part.parts),)) for index, part in enumerate(plan.lists)
    ]


def _embedding_dimensions(plan: FeaturePlan) -> list[int]:
    dimensions = [
        min(16, round(2 * part.num_values**0.25))
        for part in plan.categorical
        if part.hash_buckets is not None or not plan.has_word_matrix
    ]
    return [*dimensions, _MATRIX_DIMENSION] if plan.has_word_matrix else dimensions
