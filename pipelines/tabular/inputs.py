"""Inputs of the generic models: transformed examples for training, raw ones for serving."""

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core
from components.errors import SettingError
from estimator_core.export import (
    EvalInputReceiver,
    ServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
    build_rows_serving_input_receiver_fn,
)
from pipelines.tabular.plan import GROUP_KEY, LABEL_KEY, WEIGHT_KEY, FeaturePlan

_ROWS = 1_024  # that are divided at a time


class Part(enum.Enum):
    """Rows of a file."""

    ALL = "all rows"
    TRAIN = "rows that are learned from"
    VALIDATION = "rows that are held out"


def only(
    part: Part, dataset: Any, one_in: int = 6, group_ids: Callable[[Any], Any] | None = None, fold: int = 0
) -> Any:
    """Returns the rows of a part, in their order.

    The part of a row depends only on its number or its group, so copies of a row may be in both parts. The
    content does not matter, since the same row may be serialized in several ways.

    `one_in`: number of rows, or groups, of which one is held out.
    `group_ids`: function of serialized rows that returns the numbers of their groups, int64; the rows of a
    group are in the same part. -1 means no group.
    """
    if part is Part.ALL:
        return dataset

    @tf.autograph.experimental.do_not_convert  # it would take long, for nothing
    def selected(index: Any, rows: Any) -> Any:
        groups = None if group_ids is None else group_ids(rows)
        mask = is_held_out(index * _ROWS + tf.range(tf.size(rows, tf.int64)), one_in, groups, fold)
        return tf.boolean_mask(rows, mask if part is Part.VALIDATION else tf.logical_not(mask))

    return dataset.batch(_ROWS).enumerate().map(selected).unbatch()


def is_held_out(numbers: Any, one_in: int, groups: Any = None, fold: int = 0) -> Any:
    """Returns the mask of the held-out rows, bool."""
    keys = tf.strings.as_string(numbers)
    if groups is not None:
        names = tf.strings.join(["group ", tf.strings.as_string(groups)])
        keys = tf.where(groups < 0, keys, names)
    return tf.equal(tf.strings.to_hash_bucket_fast(keys, one_in), fold)


HELD_OUT_KEY = "is_held_out"
"""Name of the feature that marks held-out rows."""

Derive = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Adds a model's own features to transformed ones."""

_SHUFFLE_BUFFER = 20_000
_CACHED_EXAMPLES_BYTES = 256 << 20  # compressed; smaller training data stay in memory

# AutoGraph would take a second to convert functions that have nothing to convert.
_unconverted = tf.autograph.experimental.do_not_convert


def read(
    transform: tft.TFTransformOutput,
    files: Any,
    part: Part,
    one_held_out_in: int,
    batch_size: int,
    shuffle_seed: int | None = None,
    fold: int = 0,
) -> Any:
    """Returns a dataset of (features, label) batches from transformed examples.

    With a seed they are shuffled and repeated endlessly; without one they come once, in order.
    """
    paths = sorted(tf.io.gfile.glob(files))
    spec = transform.transformed_feature_spec()
    group_spec = spec.pop(GROUP_KEY, None)

    @_unconverted
    def group_ids(rows: Any) -> Any:
        return tf.io.parse_example(rows, {GROUP_KEY: group_spec})[GROUP_KEY]

    dataset = only(part, _rows(paths), one_held_out_in, group_ids if group_spec else None, fold)
    if shuffle_seed is not None:
        if sum(tf.io.gfile.stat(path).length for path in paths) <= _CACHED_EXAMPLES_BYTES:
            dataset = dataset.cache()
        dataset = dataset.shuffle(_SHUFFLE_BUFFER, seed=shuffle_seed).repeat()

    @_unconverted
    def parse(serialized: Any) -> tuple[dict[str, Any], Any]:
        features = tf.io.parse_example(serialized, spec)
        return features, features.pop(LABEL_KEY)

    batches = dataset.batch(batch_size).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)


def check_held_out(
    transform: tft.TFTransformOutput, files: Any, one_held_out_in: int, column: str, fold: int = 0
) -> None:
    """Checks that rows are held out and others are not, which a few groups do not ensure."""
    for part in (Part.VALIDATION, Part.TRAIN):
        rows = read(transform, files, part, one_held_out_in, batch_size=1, fold=fold).take(1)
        if not list(rows):
            held_out = "no rows" if part is Part.VALIDATION else "all rows"
            raise SettingError(
                f"split.column = {column!r} has too few values among the training rows: one value in "
                f"{one_held_out_in} is to be held out, and fold {fold} would hold out {held_out}. Set "
                f"{f'tuner.folds = {fold}' if fold else 'trainer.early_stopping = false'}."
            )


def read_marked(
    transform: tft.TFTransformOutput, files: Any, one_held_out_in: int, batch_size: int, fold: int = 0
) -> Any:
    """Returns a dataset of (features, label) batches of all rows, once and in order.

    The feature `HELD_OUT_KEY` marks the rows of `Part.VALIDATION`.
    """
    spec = transform.transformed_feature_spec()

    @_unconverted
    def parse(index: Any, serialized: Any) -> tuple[dict[str, Any], Any]:
        features = tf.io.parse_example(serialized, spec)
        numbers = index * batch_size + tf.range(tf.size(serialized, tf.int64))
        groups = features.pop(GROUP_KEY, None)
        features[HELD_OUT_KEY] = is_held_out(numbers, one_held_out_in, groups, fold)
        return features, features.pop(LABEL_KEY)

    batches = _rows(sorted(tf.io.gfile.glob(files))).batch(batch_size).enumerate()
    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def in_memory(
    batches: Sequence[Any], batch_size: int, more: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Returns an input_fn of batches that have been read already, without sparse features such as text.

    `batches`: pairs of (features, label), eager tensors.
    `more`: further features of all rows, `[rows, ...]`, by name.
    """
    features, _ = batches[0]
    dense = [name for name, value in features.items() if isinstance(value, tf.Tensor)]

    def joined(parts: Iterable[Any]) -> Any:
        return np.concatenate([part.numpy() for part in parts])

    return estimator_core.inputs.numpy_input_fn(
        {name: joined(features[name] for features, _ in batches) for name in dense} | dict(more or {}),
        joined(labels for _, labels in batches),
        batch_size,
        shuffle=False,
    )


def _rows(paths: list[str]) -> Any:
    return tf.data.TFRecordDataset(paths, compression_type="GZIP")


def serving_input_receiver_fn(
    plan: FeaturePlan, transform: tft.TFTransformOutput, schema: Any, derive: Derive | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a receiver function: raw rows, the columns that the model uses, -> transformed features.

    The rows are serialized tf.Examples or, in the signature `serving_rows`, tensors by column.
    """

    def receive() -> ServingInputReceiver:
        used = set(plan.columns) - {plan.label.column}
        spec = {name: kind for name, kind in _raw_feature_spec(schema).items() if name in used}
        raw = build_rows_serving_input_receiver_fn(spec, plan.packs)()
        features = _transformed(transform, raw.features)
        for name in (LABEL_KEY, GROUP_KEY, WEIGHT_KEY):
            features.pop(name, None)
        return raw.with_features(derive(features) if derive else features)

    return receive


def eval_input_receiver_fn(
    plan: FeaturePlan, transform: tft.TFTransformOutput, schema: Any, derive: Derive | None = None
) -> Callable[[], EvalInputReceiver]:
    """Returns a receiver function: serialized raw tf.Examples -> transformed features and label."""

    def receive() -> EvalInputReceiver:
        spec = _raw_feature_spec(schema)
        raw = build_parsing_serving_input_receiver_fn(spec, packs=plan.packs)()
        features = _transformed(transform, raw.features)
        label = features.pop(LABEL_KEY)
        derived = derive(features) if derive else features
        return EvalInputReceiver(derived, raw.receiver_tensors, label)

    return receive


@_unconverted
def _transformed(transform: tft.TFTransformOutput, features: Any) -> dict[str, Any]:
    return dict(transform.transform_raw_features(features))


def _raw_feature_spec(schema: Any) -> dict[str, Any]:
    return dict(schema_utils.schema_as_feature_spec(schema).feature_spec)
