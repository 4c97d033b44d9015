"""Divides the training rows into rows to learn from and rows held out for early stopping."""

import enum
from collections.abc import Callable
from typing import Any

import tensorflow as tf


class Part(enum.Enum):
    """Rows of a file."""

    ALL = "all rows"
    TRAIN = "rows that are learned from"
    VALIDATION = "rows that are held out"


def only(
    part: Part,
    dataset: Any,
    one_in: int = 6,
    group_of: Callable[[Any], Any] | None = None,
) -> Any:
    """Returns the rows of a part, in their order.

    The part of a row depends only on its number or its group, so copies of a row may be in both parts. The
    content does not matter, since the same row may be serialized in several ways.

    Args:
      part: Part to return.
      dataset: Serialized rows, string scalars, in the same order each time.
      one_in: Number of rows, or groups, of which one is held out.
      group_of: Function of a serialized row that returns the number of its group, int64; the rows of a
        group are in the same part. -1 is no group.
    """
    if part is Part.ALL:
        return dataset

    def belongs(number: Any, row: Any) -> Any:
        key = tf.strings.as_string(number)
        if group_of is not None:
            group = group_of(row)
            key = tf.where(group < 0, key, tf.strings.join(["group ", tf.strings.as_string(group)]))
        hashed = tf.strings.to_hash_bucket_fast(key, one_in)
        is_held_out = tf.equal(hashed, 0)
        return is_held_out if part is Part.VALIDATION else tf.logical_not(is_held_out)

    return dataset.enumerate().filter(belongs).map(lambda number, row: row)
