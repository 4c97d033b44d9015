"""Divides the training rows into rows to learn from and rows held out for early stopping."""

import enum
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_ROWS = 1_024  # that are divided at a time


class Part(enum.Enum):
    """Rows of a file."""

    ALL = "all rows"
    TRAIN = "rows that are learned from"
    VALIDATION = "rows that are held out"


def only(
    part: Part,
    dataset: Any,
    one_in: int = 6,
    groups_of: Callable[[Any], Any] | None = None,
    fold: int = 0,
) -> Any:
    """Returns the rows of a part, in their order.

    The part of a row depends only on its number or its group, so copies of a row may be in both parts. The
    content does not matter, since the same row may be serialized in several ways.

    `one_in`: number of rows, or groups, of which one is held out.
    `groups_of`: function of serialized rows that returns the numbers of their groups, int64; the rows of a
    group are in the same part. -1 is no group.
    """
    if part is Part.ALL:
        return dataset

    @tf.autograph.experimental.do_not_convert  # it would take long, for nothing
    def selected(index: Any, rows: Any) -> Any:
        groups = None if groups_of is None else groups_of(rows)
        mask = is_held_out(index * _ROWS + tf.range(tf.size(rows, tf.int64)), one_in, groups, fold)
        return tf.boolean_mask(rows, mask if part is Part.VALIDATION else tf.logical_not(mask))

    return dataset.batch(_ROWS).enumerate().map(selected).unbatch()


def is_held_out(numbers: Any, one_in: int, groups: Any = None, fold: int = 0) -> Any:
    """Returns the mask of the held-out rows, bool.

    `groups`: numbers of their groups, int64; -1 is no group. None without groups.
    """
    keys = tf.strings.as_string(numbers)
    if groups is not None:
        names = tf.strings.join(["group ", tf.strings.as_string(groups)])
        keys = tf.where(groups < 0, keys, names)
    return tf.equal(tf.strings.to_hash_bucket_fast(keys, one_in), fold)
