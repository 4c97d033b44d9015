"""String labels and their class ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class LabelVocabulary:
    """An ordered list of label strings; the id of a label is its index in the list."""

    def __init__(self, labels: Sequence[str], n_classes: int):
        if not isinstance(labels, (list, tuple)):
            raise ValueError(f"label_vocabulary should be a list or a tuple. Received: {labels!r}")
        if len(labels) != n_classes:
            raise ValueError(
                f'"label_vocabulary" does not have "n_classes" items. Received: '
                f"len(label_vocabulary)={len(labels)}, n_classes={n_classes}, "
                f"label_vocabulary={labels}"
            )
        if len(set(labels)) != len(labels):
            raise ValueError(f"label_vocabulary must not repeat a label. Received: {labels}")
        self.labels = tuple(labels)

    def ids(self, strings: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of string labels, same shape; -1 for a string not in the list."""
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                keys=tf.constant(self.labels, tf.string),
                values=tf.range(len(self.labels), dtype=tf.int64),
            ),
            default_value=-1,
        )
        return table.lookup(strings)

    def strings(self, ids: Any) -> tf.Tensor:
        """Returns the labels of class ids, same shape."""
        return tf.gather(tf.constant(self.labels, tf.string), ids)

    def __str__(self) -> str:
        shown = ", ".join(self.labels[:10])
        return f"[{shown}{', ...' if len(self.labels) > 10 else ''}]"
