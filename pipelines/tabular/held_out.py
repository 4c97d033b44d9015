"""Divides the training rows: those that are learned from, and those held out to see when to stop."""

import enum
from typing import Any

import tensorflow as tf


class Part(enum.Enum):
    """Rows of a file."""

    ALL = "all rows"
    TRAIN = "rows that are learned from"
    VALIDATION = "rows that are held out"


def only(part: Part, dataset: Any, one_in: int = 6) -> Any:
    """Returns the rows of a part, in their order.

    Which part a row is of depends on its number alone. Copies of a row spread. What is in it has no say:
    the same row may be serialized in several ways.

    Args:
      part: Which rows.
      dataset: Serialized rows, string scalars, in the same order each time.
      one_in: Of how many rows one is held out.
    """
    if part is Part.ALL:
        return dataset

    def belongs(number: Any, row: Any) -> Any:
        del row
        hashed = tf.strings.to_hash_bucket_fast(tf.strings.as_string(number), one_in)
        is_held_out = tf.equal(hashed, 0)
        return is_held_out if part is Part.VALIDATION else tf.logical_not(is_held_out)

    return dataset.enumerate().filter(belongs).map(lambda number, row: row)
