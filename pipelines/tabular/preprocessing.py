"""Generic `preprocessing_fn`, driven by a `FeaturePlan`."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from pipelines.data.formats.date_format import SECS_PER_DAY, DateFormat, month_number, weekday_number
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.missing import MISSING_TOKENS
from pipelines.tabular.cell_reading import read_numbers, read_times, trim
from pipelines.tabular.plan import (
    CATEGORIES,
    GROUP_KEY,
    LABEL_KEY,
    MISSING_CATEGORY,
    NUMBERS,
    WEIGHT_KEY,
    CategoricalFeature,
    FeaturePlan,
    LabelPlan,
    ListFeature,
    NumericFeature,
    TextFeature,
    WeightPlan,
)

NUMERIC_KEY = "numeric"
BUCKET_KEY = "numeric_bucket"
IS_MISSING_KEY = "numeric_is_missing"
CATEGORY_KEY = "category"
VOCABULARY = "categories"

_NUM_GROUPS = 2**40
_BETWEEN_WORDS = r"[^\pL\pN]+"


def preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """Returns the transformed features and label of a batch.

    Columns of the same kind share one analyzer, because each analyzer is a separate Beam computation, and
    they share the operations that read them: what grows with the number of columns would take most of the
    time.

    `inputs`: tensors by column; int64, float32 or string. Sparse of shape [batch_size, <=1], or dense of
    shape [batch_size, 1] or [batch_size] where the schema fixes the shape. The columns of
    `FeaturePlan.packs` are sparse matrices instead, see `parse_packed`.
    Returns `numeric` (z-scores, NaN for a missing value, float32, [batch_size, num_numeric]),
    `numeric_bucket` (ids that no two columns share, int64, same shape; where the plan has buckets),
    `numeric_is_missing` (float32, [batch_size, columns that have missing values]), `category_<position>`
    (ids, int64, [batch_size]) or `category` (int64, [batch_size, num_words], with many columns of
    `FeaturePlan.words`), `text_<position>` (ids of words and pairs of words, sparse int64, [batch_size,
    None]), `list_<position>` (0 or 1 for each part of lists, float32, [batch_size, num_parts]),
    `held_out_group` (int64, [batch_size], where the plan has one), `weight_of_row` (float32, [batch_size],
    where the plan has one) and `label` (class names as string or numbers as float32, [batch_size]).
    """
    plan = FeaturePlan.from_custom_config(custom_config)
    outputs = {LABEL_KEY: _label(plan.label, _sparse(inputs[plan.label.column]))}
    if plan.numeric:
        outputs.update(_numeric_outputs(plan, inputs))
    if plan.categorical:
        outputs.update(_categorical_outputs(plan, inputs))
    for index, text in enumerate(plan.text):
        outputs[text_key(index)] = _ngram_ids(text, _sparse(inputs[text.column]))
    for index, lists in enumerate(plan.lists):
        outputs[list_key(index)] = _multi_hot(lists, _sparse(inputs[lists.column]))
    if plan.group:
        outputs[GROUP_KEY] = _group(plan, plan.group, inputs)
    if plan.weight:
        outputs[WEIGHT_KEY] = _weights(plan.weight, plan.label, outputs[LABEL_KEY], inputs)
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
    numbers = _matrix(plan, NUMBERS, plan.numeric, inputs, _numbers, float("nan"))
    centered = numbers - [part.center for part in plan.numeric]
    is_known = tf.math.is_finite(centered)
    filled = tf.where(is_known, centered, tf.zeros_like(centered))
    terms = tf.concat([tf.cast(is_known, tf.float64), filled, filled**2], axis=1)
    count, total, squares = tf.split(tft.sum(terms, reduce_instance_dims=False), 3)
    count = tf.maximum(count, 1.0)
    mean = total / count
    stddev = tf.sqrt(tf.maximum(squares / count - mean**2, 0.0))
    scores = tf.math.divide_no_nan(filled - mean, stddev)
    scores = tf.where(is_known, scores, tf.fill(tf.shape(scores), tf.cast(float("nan"), tf.float64)))
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
    places = tf.searchsorted(boundaries, tf.transpose(numbers), side="right", out_type=tf.int64)
    buckets = tf.transpose(places)
    buckets = tf.where(is_known, buckets, tf.fill(tf.shape(buckets), tf.cast(plan.num_buckets, tf.int64)))
    offsets = tf.range(len(plan.numeric), dtype=tf.int64) * (plan.num_buckets + 1)
    return buckets + offsets


def _categorical_outputs(plan: FeaturePlan, inputs: dict[str, Any]) -> dict[str, Any]:
    text = _matrix(plan, CATEGORIES, plan.categorical, inputs, _categories, MISSING_CATEGORY)
    outputs: dict[str, Any] = {}
    for index, part in enumerate(plan.categorical):
        if part.hash_buckets is not None:
            outputs[category_key(index)] = tft.hash_strings(text[:, index], part.hash_buckets)
    words = plan.words
    if words:
        text = tf.gather(text, words, axis=1)
        # Prefixed, so that columns can share one vocabulary.
        prefixes = tf.broadcast_to([f"{index}=" for index in words], tf.shape(text))
        ids = tft.compute_and_apply_vocabulary(
            tf.strings.join([prefixes, text]), num_oov_buckets=1, vocab_filename=VOCABULARY
        )
        if plan.has_word_matrix:
            outputs[CATEGORY_KEY] = ids
        else:
            columns = tf.unstack(ids, len(words), axis=1)
            outputs |= {category_key(at): ids for at, ids in zip(words, columns, strict=True)}
    return outputs


def _matrix(
    plan: FeaturePlan,
    pack: str,
    parts: Sequence[Any],
    inputs: dict[str, Any],
    read: Callable[..., Any],
    missing: Any,
) -> Any:
    """Returns the values of columns, [batch_size, num_columns].

    Columns of the same type and format are read together: operations on each column would make a graph that
    takes minutes to build, several times in a run, when there are thousands of columns.
    """
    if pack in plan.packs:
        return _packed_matrix(pack, parts, inputs, read, missing)
    kinds: dict[Any, list[int]] = {}
    for index, part in enumerate(parts):
        tensor = inputs[part.column]
        kind = (tensor.dtype, isinstance(tensor, tf.SparseTensor), tensor.shape.rank, part.kind)
        kinds.setdefault(kind, []).append(index)
    matrices = []
    for indices in kinds.values():
        alike = [parts[index] for index in indices]
        cells = _cells([inputs[part.column] for part in alike])
        values = read(alike, cells, cells.indices[:, 0])
        matrix = tf.transpose(_filled(values, missing))
        matrix.set_shape([None, len(alike)])
        matrices.append(matrix)
    if len(matrices) == 1:
        return matrices[0]
    order = np.argsort(list(itertools.chain.from_iterable(kinds.values())))
    return tf.gather(tf.concat(matrices, axis=1), order, axis=1)


def _packed_matrix(
    pack: str, parts: Sequence[Any], inputs: dict[str, Any], read: Callable[..., Any], missing: Any
) -> Any:
    """Returns the values of a pack's columns, see `_matrix`.

    Two values of a row in a column are an InvalidArgumentError, as they are in separate columns.
    """
    kinds: dict[Any, list[int]] = {}
    for index, part in enumerate(parts):
        kinds.setdefault(part.kind, []).append(index)
    cells_by_kind = []
    for pack_matrix in _matrices_of_pack(pack, inputs):
        pack_matrix = _with_single_values(pack_matrix, [part.column for part in parts])
        for indices in kinds.values():
            places = np.full(len(parts), -1)
            places[indices] = np.arange(len(indices))
            places_of_cells = tf.gather(places, pack_matrix.indices[:, 1])
            cells = tf.sparse.retain(pack_matrix, places_of_cells >= 0)
            alike = [parts[index] for index in indices]
            cells_by_kind.append(read(alike, cells, tf.gather(places, cells.indices[:, 1])))
    positions = tf.concat([part.indices for part in cells_by_kind], axis=0)
    values = tf.concat([part.values for part in cells_by_kind], axis=0)
    shape = [cells_by_kind[0].dense_shape[0], len(parts)]
    matrix = tf.tensor_scatter_nd_update(
        tf.fill(shape, tf.constant(missing, values.dtype)), positions, values
    )
    matrix.set_shape([None, len(parts)])
    return matrix


def _matrices_of_pack(pack: str, inputs: dict[str, Any]) -> list[Any]:
    """Returns the matrices of a pack, one for each type that its columns have."""
    from estimator_core.export import packed_name

    names = (packed_name(pack, dtype) for dtype in (tf.float32, tf.int64, tf.string))
    return [inputs[name] for name in names if name in inputs]


def _with_single_values(matrix: Any, columns: Sequence[str]) -> Any:
    """Returns a matrix in row-major order; running it fails where a row has two values in a column."""
    places = matrix.indices
    is_repeated = tf.reduce_all(tf.equal(places[1:], places[:-1]), axis=1)
    names = tf.gather(columns, tf.boolean_mask(places[1:, 1], is_repeated))
    check = tf.debugging.Assert(
        tf.logical_not(tf.reduce_any(is_repeated)),
        ["A row has more than one value in a column. Received: columns", names],
    )
    with tf.control_dependencies([check]):
        return _with_values(matrix, tf.identity(matrix.values))


def _cells(columns: Sequence[Any]) -> Any:
    """Returns the cells of columns of one type as a sparse tensor of shape [num_columns, batch_size]."""
    if isinstance(columns[0], tf.SparseTensor):
        batch_size = columns[0].dense_shape[0]
        counts = tf.concat(tf.shape_n([column.values for column in columns], out_type=tf.int64), axis=0)
        numbers = tf.repeat(tf.range(len(columns), dtype=tf.int64), counts)
        rows = tf.concat([column.indices for column in columns], axis=0)[:, 0]
        values = tf.concat([column.values for column in columns], axis=0)
    else:
        stack = tf.concat if columns[0].shape.rank == 2 else tf.stack
        matrix = tf.transpose(stack(columns, axis=1))
        batch_size = tf.shape(matrix, tf.int64)[1]
        values = tf.reshape(matrix, [-1])
        positions = tf.range(tf.size(values, tf.int64))
        numbers, rows = positions // batch_size, positions % batch_size
    shape = tf.stack([tf.constant(len(columns), tf.int64), batch_size])
    return tf.SparseTensor(tf.stack([numbers, rows], axis=1), values, shape)


def _label(label: LabelPlan, raw: Any) -> Any:
    """Returns the class name (string) or the number (float32) of each example."""
    if label.problem_type == "regression":
        return tf.cast(_dense(_as_numbers(raw, label.number_format), float("nan")), tf.float32)
    if label.values == "number":
        numbers = _as_numbers(raw)
        return _dense(_with_values(numbers, tf.strings.as_string(tf.cast(numbers.values, tf.int64))), "")
    return _dense(_as_text(raw), "")


def _numbers(parts: Sequence[NumericFeature], cells: Any, places: Any) -> Any:
    """Returns the numbers of columns of one kind, or the days since 1970 of their dates, as float64.

    `places` has the position in `parts` of each cell's feature.
    """
    date = parts[0].date
    if date is None:
        return _as_numbers(cells, parts[0].number_format)
    is_valid, _, secs = read_times(cells.values, DateFormat(date))
    newest = [math.inf if part.newest is None else part.newest for part in parts]
    days = tf.cast(secs, tf.float64) / SECS_PER_DAY
    days = tf.minimum(days, tf.gather(tf.constant(newest, tf.float64), places))
    return tf.sparse.retain(_with_values(cells, days), is_valid)


def _categories(parts: Sequence[CategoricalFeature], cells: Any, _: Any) -> Any:
    """Returns the categories of columns of one kind as text."""
    part = parts[0]
    if part.date is not None:
        is_valid, local_secs, _ = read_times(cells.values, DateFormat(part.date))
        days = local_secs // SECS_PER_DAY
        value = {
            "month": lambda: month_number(days),
            "weekday": lambda: weekday_number(days),
            "hour": lambda: local_secs % SECS_PER_DAY // 3_600,
        }[part.part or "month"]()
        return tf.sparse.retain(_with_values(cells, tf.strings.as_string(value)), is_valid)
    text = _as_text(cells, MISSING_TOKENS)
    if part.words is None:
        return text
    folded = tf.strings.lower(text.values, encoding="utf-8")
    for word, name in zip(part.words, ("true", "false"), strict=True):
        folded = tf.where(tf.equal(folded, word), name, folded)
    return _with_values(text, folded)


def _group(plan: FeaturePlan, column: str, inputs: dict[str, Any]) -> Any:
    """Returns the number of each row's group, int64 of shape [batch_size]; -1 without a group."""
    numbers = []
    for raw in _cells_of_column(plan, column, inputs):
        text = _as_text(raw, MISSING_TOKENS)
        hashes = tf.strings.to_hash_bucket_fast(text.values, _NUM_GROUPS)
        numbers.append(_dense(_with_values(text, hashes), -1))
    return tf.reduce_max(tf.stack(numbers), axis=0)


def _weights(weight: WeightPlan, plan: LabelPlan, label: Any, inputs: dict[str, Any]) -> Any:
    """Returns the weight of each row, float32 of shape [batch_size]; NaN for a cell without a number."""
    weights = tf.fill(tf.shape(label), tf.constant(weight.scale, tf.float64))
    if weight.column:
        numbers = _as_numbers(_sparse(inputs[weight.column]), weight.number_format)
        weights *= _dense(numbers, float("nan"))
    if weight.classes:
        is_class = tf.cast(tf.equal(label[:, tf.newaxis], tf.constant(plan.classes)), tf.float64)
        weights *= tf.linalg.matvec(is_class, tf.constant(weight.classes, tf.float64))
    return tf.cast(weights, tf.float32)


def _cells_of_column(plan: FeaturePlan, column: str, inputs: dict[str, Any]) -> list[Any]:
    """Returns sparse tensors of shape [batch_size, <=1]; one has the cells of a column.

    A column in a pack is cut out of the matrix of each type, as the matrices do not tell its type.
    """
    for pack, columns in plan.packs.items():
        if column in columns:
            start = [0, columns.index(column)]
            return [
                tf.sparse.slice(matrix, start, [matrix.dense_shape[0], 1])
                for matrix in _matrices_of_pack(pack, inputs)
            ]
    return [_sparse(inputs[column])]


def _ngram_ids(part: TextFeature, raw: Any) -> Any:
    """Returns hashed words, and pairs of words, sparse int64 of shape [batch_size, None]."""
    text = tf.strings.lower(_dense(_as_text(raw, MISSING_TOKENS), ""), encoding="utf-8")
    words = tf.strings.split(tf.strings.regex_replace(text, _BETWEEN_WORDS, " ")).to_sparse()
    sizes = (1, 2) if part.has_pairs else (1, 1)
    return tft.hash_strings(tft.ngrams(words, sizes, separator=" "), part.hash_buckets)


def _multi_hot(part: ListFeature, raw: Any) -> Any:
    """Returns 1 for each part that a list has and 0 for others, float32 of shape [batch_size, num_parts]."""
    text = _as_text(raw)
    lists = tf.strings.split(text.values, part.separator)
    is_part = tf.equal(trim(lists.values)[:, tf.newaxis], tf.constant(part.parts))
    rows = tf.gather(text.indices[:, 0], lists.value_rowids())
    multi_hot = tf.math.unsorted_segment_max(
        tf.cast(is_part, tf.float32), rows, text.dense_shape[0]
    )  # a row without a list has the lowest number
    multi_hot = tf.maximum(multi_hot, 0.0)
    multi_hot.set_shape([None, len(part.parts)])
    return multi_hot


def _as_numbers(raw: Any, number_format: NumberFormat | None = None) -> Any:
    """Returns the finite numbers of a sparse tensor as float64; everything else is missing."""
    values = read_numbers(raw.values, number_format)
    return tf.sparse.retain(_with_values(raw, values), tf.math.is_finite(values))


def _as_text(raw: Any, missing: Sequence[str] = ("",)) -> Any:
    """Returns the values of a sparse tensor as trimmed text, without the texts that mean "no value"."""
    values = raw.values
    text = trim(values) if values.dtype == tf.string else tf.strings.as_string(values)
    has_value = tf.reduce_all(tf.not_equal(text[:, tf.newaxis], tf.constant(missing)), axis=1)
    return tf.sparse.retain(_with_values(raw, text), has_value)


def _with_values(sparse: Any, values: Any) -> Any:
    return tf.SparseTensor(sparse.indices, values, sparse.dense_shape)


def _dense(sparse: Any, default: Any) -> Any:
    """Returns the value of each example, or the default, of shape [batch_size]."""
    one_each = tf.SparseTensor(sparse.indices, sparse.values, [sparse.dense_shape[0], 1])
    return tf.squeeze(_filled(one_each, default), axis=1)


def _filled(sparse: Any, default: Any) -> Any:
    default = tf.cast(default, sparse.values.dtype) if not isinstance(default, str) else default
    return tf.sparse.to_dense(sparse, default)


def category_key(index: int) -> str:
    """Returns the name of the transformed feature of the plan's categorical column `index`."""
    return f"category_{index}"


def list_key(index: int) -> str:
    """Returns the name of the transformed feature of the plan's column of lists `index`."""
    return f"list_{index}"


def text_key(index: int) -> str:
    """Returns the name of the transformed feature of the plan's text column `index`."""
    return f"text_{index}"


def text_mean_key(index: int) -> str:
    """Returns the name of the feature with the means of the plan's text column `index`, see `TextMeans`."""
    return f"text_mean_{index}"
