"""(d) LinearClassifier over a million hash buckets, with at most twenty in an example."""

import numpy as np
import tensorflow as tf

from benchmarks.workloads import dnn
from benchmarks.workloads.training import Training

BATCH_SIZE = 128
BUCKETS = 1_000_000
EXAMPLES = 25_600
LONGEST = 20
WORDS = 200_000


def input_fn():
    """Returns an endless dataset of batches of words; empty strings count as missing."""
    rng = np.random.default_rng(0)
    words = (WORDS * rng.random((EXAMPLES, LONGEST)) ** 3).astype(np.int64)  # low numbers are frequent
    there = np.arange(LONGEST) < rng.integers(5, LONGEST + 1, (EXAMPLES, 1))
    opinions = rng.normal(size=WORDS)
    labels = ((opinions[words] * there).sum(1, keepdims=True) > 0).astype(np.int64)
    texts = np.where(there, np.char.add("w", words.astype("U6")), "").astype("S7")
    batches = dnn.in_batches(({"words": texts}, labels), BATCH_SIZE)
    return tf.data.Dataset.from_tensor_slices(batches).repeat().prefetch(tf.data.AUTOTUNE)


def make_estimator(estimator, config):
    """Returns the classifier, with its default optimizer, Ftrl."""
    words = tf.feature_column.categorical_column_with_hash_bucket("words", BUCKETS)
    return estimator.LinearClassifier([words], config=config)


WORK = Training(BATCH_SIZE, input_fn, make_estimator)
