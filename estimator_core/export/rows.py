"""A receiver of raw columns as tensors, in addition to serialized tf.Examples."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.export.packs import MISSING, Packs, is_known, parse_packed
from estimator_core.export.receivers import ServingInputReceiver, op_name
from estimator_core.export.saved_model import SERVING_ROWS
from estimator_core.logs import logger


def build_rows_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], packs: Packs | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a `serving_input_receiver_fn` for serialized tf.Examples and for raw columns as tensors.

    The model has all signatures that `build_parsing_serving_input_receiver_fn` gives it, and `serving_rows`,
    whose inputs are the features by name, each `[batch_size]`, and whose outputs are the predictions. With
    it, a client of TensorFlow Serving sends rows as JSON, without tf.Examples:

        {"signature_name": "serving_rows", "instances": [{"fare": 12.5, "company": "Prairie Cab"}]}

    A missing value is NaN for a float, the smallest int64 for a whole number, and "" for text. There is no
    `serving_rows` if TensorFlow could not load it, because Python reserves a feature's name (`class`), or it
    is not an identifier even with `_` for other characters (`m²`); a warning names the feature.

    Args:
        feature_spec: Dict of feature name to `tf.io.VarLenFeature` with at most one value, or to
            `tf.io.FixedLenFeature` of shape [] or [1]; of float32, int64 or string. A missing value of the
            latter is its default; without one, its mark reaches the model, and in a pack there is no entry.
        packs: Columns that are features together, see `parse_packed`. The inputs of the model stay the same.

    Raises:
        ValueError: A feature is of another kind.

    Example:
        def serving_input_receiver_fn():
            raw = build_rows_serving_input_receiver_fn(raw_feature_spec)()
            features = transform_output.transform_raw_features(raw.features)
            return raw.with_features(features)
    """
    for name, kind in feature_spec.items():
        is_one_value = isinstance(kind, tf.io.VarLenFeature) or (
            isinstance(kind, tf.io.FixedLenFeature) and list(kind.shape) in ([], [1])
        )
        if not is_one_value or kind.dtype not in MISSING:
            raise ValueError(
                "A column of rows is a VarLenFeature, or a FixedLenFeature of shape [] or [1], of float32, "
                f"int64 or string. Received: {name!r}: {kind!r}"
            )

    def serving_input_receiver_fn() -> ServingInputReceiver:
        # Either input is empty unless it is fed, and the batch is the rows of both.
        serialized = tf1.placeholder_with_default(
            tf.constant([], tf.string), [None], name="input_example_tensor"
        )
        no_rows = {dtype: tf.constant([], dtype) for dtype in MISSING}
        rows = {
            name: tf1.placeholder_with_default(no_rows[kind.dtype], [None], name=op_name(name))
            for name, kind in feature_spec.items()
        }
        parsed = parse_packed(serialized, feature_spec, packs or {}, rows)
        features: dict[str, Any] = {}
        for dtype in MISSING:
            sparse = [
                name
                for name, kind in feature_spec.items()
                if isinstance(kind, tf.io.VarLenFeature) and kind.dtype == dtype and name in parsed
            ]
            features |= _sparse_with_rows(sparse, parsed, rows)
        features |= {
            name: _dense_with_rows(parsed[name], rows[name], kind)
            for name, kind in feature_spec.items()
            if isinstance(kind, tf.io.FixedLenFeature) and name in parsed
        }
        features = {name: features[name] for name in feature_spec if name in features}
        features |= {name: value for name, value in parsed.items() if name not in features}
        alternatives = None if _unloadable(rows) else {SERVING_ROWS: rows}
        if alternatives is None:
            logger.warning(
                "The model has no signature %r: TensorFlow cannot load a function with the argument %r.",
                SERVING_ROWS,
                _unloadable(rows),
            )
        return ServingInputReceiver(features, {"examples": serialized}, alternatives)

    return serving_input_receiver_fn


def _unloadable(names: Iterable[str]) -> str | None:
    """Returns the first name that cannot be an argument when TensorFlow loads the signature; None if all can.

    TensorFlow puts `_` in the place of characters that are neither letters nor digits.
    """
    taken: set[str] = set()
    for name in names:
        argument = "".join(char if char.isalnum() else "_" for char in name)
        argument = argument if argument[:1].isalpha() else f"arg_{argument}"
        if not argument.isidentifier() or keyword.iskeyword(argument) or argument in taken:
            return name
        taken.add(argument)
    return None


def _sparse_with_rows(
    names: Sequence[str], parsed: Mapping[str, Any], rows: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the parsed features of one type, each followed by the values of its rows `[batch_size]`.

    The rows of all columns are taken apart together: a dozen operations for each would be most of the graph
    of a model with thousands of columns.
    """
    if not names:
        return {}
    columns = tf.stack([rows[name] for name in names])  # [num_columns, batch_size]
    is_present = is_known(columns)
    positions = tf.where(is_present)
    counts = tf.reduce_sum(tf.cast(is_present, tf.int32), axis=1)
    num_parsed, num_rows = parsed[names[0]].dense_shape[0], tf.shape(columns, tf.int64)[1]
    in_column = tf.pad(positions[:, 1:] + num_parsed, [[0, 0], [0, 1]])
    indices = tf.split(in_column, counts, num=len(names))
    values = tf.split(tf.boolean_mask(columns, is_present), counts, num=len(names))
    at_least = tf.stack([num_parsed + num_rows, 1])
    return {
        name: tf.SparseTensor(
            tf.concat([parsed[name].indices, indices[index]], axis=0),
            tf.concat([parsed[name].values, values[index]], axis=0),
            tf.maximum(parsed[name].dense_shape, at_least),
        )
        for index, name in enumerate(names)
    }


def _dense_with_rows(parsed: Any, rows: Any, kind: Any) -> Any:
    """Returns a parsed feature, followed by the values of rows `[batch_size]`."""
    if kind.default_value is not None:
        default = tf.reshape(tf.cast(kind.default_value, kind.dtype), [])
        rows = tf.where(is_known(rows), rows, default)
    return tf.concat([parsed, tf.reshape(rows, [-1, *kind.shape])], axis=0)
