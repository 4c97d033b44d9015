"""Every kind of feature column, in a linear model and in a network."""

import os

import numpy as np
import tensorflow as tf

from tests.oracle.programs import data
from tests.oracle.programs.data import KINDS, NUM_EXAMPLES, TAGS, with_tags
from tests.oracle.programs.program import Program

fc = tf.feature_column

KINDS_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.txt")
CODES = np.random.RandomState(3).choice([7, 11, 13, 500], NUM_EXAMPLES).astype(np.int64)
SERIALS = CODES + np.arange(NUM_EXAMPLES) % 3


def _inputs(label):
    return with_tags(label, code=CODES, serial=SERIALS, more_tags=TAGS[::-1])


SERVING_FEATURES = {
    **data.SERVING_FEATURES,
    "code": tf.io.FixedLenFeature([1], tf.int64),
    "serial": tf.io.FixedLenFeature([1], tf.int64),
    "more_tags": tf.io.VarLenFeature(tf.string),
}

SIZE = fc.numeric_column("size", default_value=0.5, normalizer_fn=lambda x: (x - 0.1) / 2.0)
PLACE = fc.numeric_column("place", shape=(2,))
PLACE_CLASS = fc.bucketized_column(PLACE, [0.25, 0.5, 0.75])
KIND = fc.categorical_column_with_vocabulary_list("kind", KINDS[:3], default_value=1)
KIND_OF_FILE = fc.categorical_column_with_vocabulary_file("kind", KINDS_FILE, num_oov_buckets=2)
FEW_KINDS_OF_FILE = fc.categorical_column_with_vocabulary_file(
    "kind", KINDS_FILE, vocabulary_size=2, default_value=0
)
CODE = fc.categorical_column_with_vocabulary_list("code", [7, 11, 13], num_oov_buckets=2)
SERIAL = fc.categorical_column_with_hash_bucket("serial", 5, dtype=tf.int64)
FLOOR = fc.categorical_column_with_identity("floor", 6, default_value=0)
TAG = fc.categorical_column_with_hash_bucket("tags", 8)
MORE_TAG = fc.categorical_column_with_hash_bucket("more_tags", 8)
WEIGHTED_TAG = fc.weighted_categorical_column(TAG, "tag_weights")
CROSS = fc.crossed_column([PLACE_CLASS, "kind", FLOOR], 30)
CROSS_OF_WORDS = fc.crossed_column(["tags", "kind"], 20, hash_key=5)


def _shared_by_tags():
    with tf.Graph().as_default():  # the function refuses to run eagerly
        return tf.compat.v1.feature_column.shared_embedding_columns(
            [TAG, MORE_TAG], 2, combiner="sqrtn", max_norm=1.5
        )


def _linear(columns, **arguments):
    return Program(
        _inputs("number"), lambda e, **kw: e.LinearRegressor(columns, **arguments, **kw), SERVING_FEATURES
    )


def _dnn(columns, seed=None, **arguments):
    return Program(
        _inputs("binary"),
        lambda e, **kw: e.DNNClassifier([4], columns, **arguments, **kw),
        SERVING_FEATURES,
        seed=seed,
    )


PROGRAMS = {
    "columns_linear_dense": _linear([SIZE, PLACE, PLACE_CLASS]),
    "columns_linear_vocabularies": _linear([KIND, CODE, SERIAL, FLOOR]),
    "columns_linear_vocabulary_file": _linear([KIND_OF_FILE, SIZE]),
    "columns_linear_few_of_vocabulary_file": _linear([FEW_KINDS_OF_FILE]),
    "columns_linear_crossed": _linear([CROSS, CROSS_OF_WORDS, KIND], optimizer="Adagrad"),
    "columns_linear_words": _linear([WEIGHTED_TAG, MORE_TAG], sparse_combiner="sqrtn"),
    "columns_linear_indicator_and_embedding": _linear(
        [fc.indicator_column(TAG), fc.embedding_column(KIND, 2)]
    ),
    "columns_dnn_dense": _dnn([SIZE, PLACE, PLACE_CLASS]),
    "columns_dnn_indicators": _dnn(
        [
            fc.indicator_column(KIND_OF_FILE),
            fc.indicator_column(CODE),
            fc.indicator_column(FLOOR),
            fc.indicator_column(WEIGHTED_TAG),
            fc.indicator_column(CROSS),
        ]
    ),
    "columns_dnn_embeddings": _dnn(
        [
            fc.embedding_column(TAG, 2, combiner="sum"),
            fc.embedding_column(MORE_TAG, 3, combiner="sqrtn", max_norm=0.8),
            fc.embedding_column(SERIAL, 2, trainable=False),
            fc.embedding_column(WEIGHTED_TAG, 2),
            fc.embedding_column(
                CROSS_OF_WORDS, 2, initializer=tf.compat.v1.initializers.random_uniform(-0.5, 0.5)
            ),
        ],
        seed=1,  # the name's draws logits close to 0
        optimizer="Adam",
    ),
    "columns_v1_shared_embeddings": Program(
        _inputs("binary"),
        lambda e, **kw: e.DNNClassifier(
            [4],
            [SIZE, *_shared_by_tags()],
            loss_reduction=tf.compat.v1.losses.Reduction.SUM_OVER_BATCH_SIZE,
            **kw,
        ),
        SERVING_FEATURES,
        v1=True,
    ),
}
