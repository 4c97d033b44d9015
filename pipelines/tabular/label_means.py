"""Means of the label, as numbers for trees: of each value of a category, and of the words of free text.

Where the rows have weights, all means and sums are weighted.

Trees split numbers in two. If the values of a category are sorted by the mean of their label, one split can
reach the best division into two groups (for a squared error, and for two classes); in any other order it
takes many splits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from pipelines.tabular.inputs import HELD_OUT_KEY
from pipelines.tabular.plan import WEIGHT_KEY, FeaturePlan, LabelPlan
from pipelines.tabular.preprocessing import text_key, text_mean_key

MIN_ROWS = 20
"""Smallest number of rows of a value; with fewer, a row's own label has too much weight in the mean."""

MAX_CONSTANTS = 4_000_000
"""Largest number of ids of all features: each feature looks its means up in a constant of the graph."""

FOLDS = 5
SHRINKAGE = 20
"""Rows of a word at which its mean is halved."""


def has_label_means(label: LabelPlan, keys: tuple[str, ...], num_ids: int) -> bool:
    """Returns True if the label has means: it is a number or one of two classes, with not too many ids."""
    has_mean = label.problem_type == "regression" or len(label.classes) == 2
    return has_mean and 0 < len(keys) * num_ids <= MAX_CONSTANTS


def label_means(
    batches: Any, label: LabelPlan, keys: tuple[str, ...], num_ids: int
) -> npt.NDArray[np.float32]:
    """Returns the mean of the label by id, shrunk towards the mean of all rows.

    `batches`: pairs of (features, label). Features are ids, int64, shape [batch_size, ...]; labels are
    numbers or class names, shape [batch_size]. The rows that `HELD_OUT_KEY` marks, if there is one, do not
    count.
    `label`: plan of the label; its second class counts as 1, the first one as 0.
    `keys`: features whose ids are counted. They share only the last id, of unknown values.
    Returns float32, shape [num_ids]; NaN for the last id, and for those of fewer than `MIN_ROWS` rows.
    """
    sums, sizes, counts = np.zeros(num_ids), np.zeros(num_ids), np.zeros(num_ids)
    total = size = 0.0
    for features, labels in batches:
        mask = ~features[HELD_OUT_KEY].numpy() if HELD_OUT_KEY in features else slice(None)
        values = labels.numpy()[mask]
        if label.problem_type == "regression":
            values = values.astype(np.float64)
        else:
            values = (values == label.classes[1].encode()).astype(np.float64)
        weights = _weights(features, len(labels))[mask]
        total, size = total + values @ weights, size + weights.sum()
        for key in keys:
            ids = features[key].numpy()[mask]
            of_each = ids[0].size if len(ids) else 1
            ids = ids.ravel()
            sums += np.bincount(ids, np.repeat(values * weights, of_each), num_ids)
            sizes += np.bincount(ids, np.repeat(weights, of_each), num_ids)
            counts += np.bincount(ids, minlength=num_ids)
    mean = total / size if size else 0.0
    shrunk = (sums + MIN_ROWS * mean) / (sizes + MIN_ROWS)
    is_frequent = counts >= MIN_ROWS
    is_frequent[-1] = False
    return np.where(is_frequent, shrunk, np.nan).astype(np.float32)


def num_means(label: LabelPlan) -> int:
    """Returns the number of means of a text: one, or one for each class if there are more than two."""
    return len(label.classes) if len(label.classes) > 2 else 1


def has_text_means(plan: FeaturePlan) -> bool:
    """Returns True if there is text, and the means of its words are not too many constants of the graph."""
    num_words = sum(text.hash_buckets for text in plan.text)
    return 0 < num_words * num_means(plan.label) <= MAX_CONSTANTS


class TextMeans:
    """The means of words, and those of the texts that they were learned from.

    A word's number is the mean of the label in the rows that have the word, minus that of all rows, shrunk
    towards 0; a text's number is the sum over its words, divided by the square root of their count. With
    several classes there is one for each class. The rows to learn from get theirs out-of-fold, from the words
    of other rows: with its own label in the mean, a row of rare words would give the label away, and trees
    would trust the number.

    `of_words`: Means of the words of each text column, float32 `[hash_buckets, num_means]`.
    `of_rows`: Out-of-fold means of the rows by feature, float32 `[rows, num_means]`, in the order of the
    batches. Those of held-out rows are from all rows to learn from.
    `batches`: pairs of (features, label), eager tensors. The rows that `HELD_OUT_KEY` marks, if there is
    one, do not count.
    """

    def __init__(self, batches: Sequence[Any], plan: FeaturePlan):
        targets = np.concatenate([_targets(labels, plan.label) for _, labels in batches])
        weights = np.concatenate([_weights(features, len(labels)) for features, labels in batches])
        held_out: npt.NDArray[np.bool_] = np.zeros(len(targets), bool)
        if HELD_OUT_KEY in batches[0][0]:
            held_out = np.concatenate([features[HELD_OUT_KEY].numpy() for features, _ in batches])
        folds = np.where(held_out, FOLDS, np.arange(len(targets)) % FOLDS)
        self.of_words: list[npt.NDArray[np.float32]] = []
        self.of_rows: dict[str, npt.NDArray[np.float32]] = {}
        for index, text in enumerate(plan.text):
            rows, ids = _words([features[text_key(index)] for features, _ in batches])
            parts = [
                _sums(rows, ids, folds == fold, targets, weights, text.hash_buckets) for fold in range(FOLDS)
            ]
            whole = tuple(sum(values) for values in zip(*parts, strict=True))
            learned = _means(*whole)
            means = np.zeros((len(targets), targets.shape[1]), np.float32)
            for fold in range(FOLDS + 1):
                table = learned
                if fold < FOLDS:
                    table = _means(*(a - b for a, b in zip(whole, parts[fold], strict=True)))
                mask = folds == fold
                means[mask] = _text_means(rows, ids, mask, table)
            self.of_words.append(learned)
            self.of_rows[text_mean_key(index)] = means

    def with_text_means(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Returns features with the means of texts, float32 `[batch_size, num_means]`, in TensorFlow."""
        added = dict(features)
        for index, table in enumerate(self.of_words):
            ids = features[text_key(index)]
            rows, size = ids.indices[:, 0], ids.dense_shape[0]
            sums = tf.math.unsorted_segment_sum(tf.gather(table, ids.values), rows, size)
            counts = tf.math.unsorted_segment_sum(tf.ones_like(rows, tf.float32), rows, size)
            means = sums / tf.sqrt(tf.maximum(counts, 1.0))[:, tf.newaxis]
            means.set_shape([None, table.shape[1]])
            added[text_mean_key(index)] = means
        return added


def _targets(labels: Any, label: LabelPlan) -> npt.NDArray[np.float64]:
    """Returns numbers to take means of, `[batch_size, num_means]`."""
    values = labels.numpy()
    if label.problem_type == "regression":
        return values.astype(np.float64)[:, np.newaxis]
    names = np.array([name.encode() for name in label.classes])
    classes = names if len(names) > 2 else names[1:]
    return (values[:, np.newaxis] == classes).astype(np.float64)


def _weights(features: Mapping[str, Any], num_rows: int) -> npt.NDArray[np.float64]:
    """Returns the weights of rows, 1 if they have none."""
    if WEIGHT_KEY not in features:
        return np.ones(num_rows)
    return np.asarray(features[WEIGHT_KEY], np.float64)


def _words(texts: Sequence[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the row and the id of each word, of all batches."""
    sizes = [int(text.dense_shape[0]) for text in texts]
    begins = np.cumsum([0, *sizes[:-1]])
    rows = [text.indices.numpy()[:, 0] + begin for text, begin in zip(texts, begins, strict=True)]
    return np.concatenate(rows), np.concatenate([text.values.numpy() for text in texts])


def _sums(
    rows: Any, ids: Any, mask: Any, targets: Any, weights: Any, num_ids: int
) -> tuple[Any, Any, Any, float]:
    """Returns sums of the label and of the weight by word, and both of all rows, of a mask's rows."""
    used = mask[rows]
    rows, ids = rows[used], ids[used]
    weighted = targets * weights[:, np.newaxis]
    sums = [np.bincount(ids, column[rows], num_ids) for column in weighted.T]
    sizes = np.bincount(ids, weights[rows], num_ids)
    return np.stack(sums, axis=1), sizes, weighted[mask].sum(axis=0), float(weights[mask].sum())


def _means(sums: Any, sizes: Any, total: Any, size: float) -> npt.NDArray[np.float32]:
    """Returns the shrunk means of words, minus the mean of all rows."""
    mean = total / size if size > 0 else 0.0 * total
    sizes = sizes[:, np.newaxis]
    means: npt.NDArray[np.float32] = ((sums - sizes * mean) / (sizes + SHRINKAGE)).astype(np.float32)
    return means


def _text_means(rows: Any, ids: Any, mask: Any, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns the means of the texts of a mask's rows, as `with_text_means` does."""
    used = mask[rows]
    rows, ids = (np.cumsum(mask) - 1)[rows[used]], ids[used]
    size = int(mask.sum())
    sums = [np.bincount(rows, column[ids], size) for column in table.T]
    counts = np.maximum(np.bincount(rows, minlength=size), 1)
    means: npt.NDArray[np.float32] = (np.stack(sums, axis=1) / np.sqrt(counts)[:, np.newaxis]).astype(
        np.float32
    )
    return means
