"""Reads formatted cells in a graph, in the same way as `pipelines.data.formats.arrow_reading`.

It is part of the Transform graph, so that a served model accepts `$33.50` or `2014-03-01 12:00` as written
in the CSV.
"""

from typing import Any

import tensorflow as tf

from pipelines.data.formats.date_format import DateFormat, epoch_seconds
from pipelines.data.formats.number_format import NumberFormat, pattern_and_terms

_OUTER_WHITE_SPACE = r"^[\pZ\s\v]+|[\pZ\s\v]+$"  # also Unicode's, as in the profile


def trim(text: Any) -> Any:
    """Returns text without white space around it."""
    return tf.strings.regex_replace(text, _OUTER_WHITE_SPACE, "")


def read_numbers(values: Any, number_format: NumberFormat | None) -> Any:
    """Returns the numbers of cells as float64, of the same shape; NaN where a cell is not a number."""
    if values.dtype != tf.string:
        return tf.cast(values, tf.float64)
    cells = trim(values)
    pattern, terms = pattern_and_terms(number_format)
    is_number = tf.strings.regex_full_match(cells, pattern)
    total: Any = 0.0
    for steps, factor in terms:
        text = cells
        for wanted, replacement in steps:
            text = tf.strings.regex_replace(text, wanted, replacement)
        numbers = tf.strings.to_number(tf.where(is_number, text, "nan"), tf.float64)
        total = total + factor * numbers
    return total


def read_times(values: Any, date_format: DateFormat) -> tuple[Any, Any, Any]:
    """Returns a mask of the cells that are points in time, and their seconds since 1970, local and in UTC.

    All have the shape of `values`; the seconds are int64, and meaningless where the mask is False.
    """
    if date_format.unit_secs is not None:
        numbers = read_numbers(values, None)
        is_valid = tf.math.is_finite(numbers)
        valid_cells = tf.where(is_valid, numbers, tf.zeros_like(numbers))
        secs = tf.cast(tf.floor(valid_cells * date_format.unit_secs), tf.int64)
        return is_valid, secs, secs
    text = trim(values) if values.dtype == tf.string else tf.strings.as_string(values)
    is_valid = tf.strings.regex_full_match(text, date_format.pattern)
    valid_cells = tf.where(is_valid, text, "")
    parts: dict[Any, Any] = {}
    for part, steps in date_format.parts.items():
        digits = valid_cells
        for pattern, replacement in steps:
            digits = tf.strings.regex_replace(digits, pattern, replacement)
        parts[part] = tf.strings.to_number(digits, tf.int64)
    local, utc, is_known = epoch_seconds(parts)
    return tf.logical_and(is_valid, is_known), local, utc
