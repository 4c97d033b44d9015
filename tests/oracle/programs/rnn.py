"""Recurrent models, over whole sequences and step by step."""

import numpy as np
import tensorflow as tf

from tests.oracle.programs.data import BATCH_SIZE, FEATURES, GRADES, LABELS, NUM_EXAMPLES
from tests.oracle.programs.heads import HEADS, SEEDS
from tests.oracle.programs.program import Program

fc = tf.feature_column


def _sequences():
    rng = np.random.RandomState(11)
    # One example of each batch has no time step at all.
    lengths = [index % BATCH_SIZE and rng.randint(1, 6) for index in range(NUM_EXAMPLES)]
    words = [[f"word{i}" for i in rng.randint(0, 9, n)] for n in lengths]
    amounts = [list(rng.randn(2 * n).astype(np.float32)) for n in lengths]
    weights = [list(rng.rand(n).astype(np.float32) + 0.1) for n in lengths]
    sums = [np.cumsum(row[::2]) for row in amounts]
    features = {"words": words, "amounts": amounts, "step_weights": weights}
    labels = {
        "up": [(row > 0).astype(np.int64).tolist() for row in sums],
        "course": [[GRADES[i] for i in np.digitize(row, [-0.5, 0.5])] for row in sums],
        "sum": [row.tolist() for row in sums],
        "topics_by_step": [[[int(x > 0), int(x > 1)] for x in row] for row in sums],
    }
    return features, labels


SEQUENCES, STEP_LABELS = _sequences()
LABEL_DTYPES = {"up": tf.int64, "course": tf.string, "sum": tf.float32, "topics_by_step": tf.int64}


def _inputs(label, dense_labels=False):
    """Returns a `Program`'s inputs; a label of single steps is sparse, or dense with padding."""

    def of_batch(features, labels):
        sparse = {name: features[name].to_sparse() for name in ("words", "amounts")}
        # Weights of single steps are dense, as everything that the head reads may be.
        weights = features["step_weights"].to_tensor()
        if isinstance(labels, tf.RaggedTensor):
            labels = labels.to_tensor() if dense_labels else labels.to_sparse()
        return {**features, **sparse, "step_weights": weights}, labels

    def inputs(repeat=None):
        def input_fn():
            features = {
                **FEATURES,
                **{
                    name: tf.ragged.constant(rows, tf.string if name == "words" else tf.float32)
                    for name, rows in SEQUENCES.items()
                },
            }
            labels = (
                tf.ragged.constant(STEP_LABELS[label], LABEL_DTYPES[label], ragged_rank=1)
                if label in STEP_LABELS
                else LABELS[label]
            )
            dataset = tf.data.Dataset.from_tensor_slices((features, labels))
            return dataset.repeat(repeat).batch(BATCH_SIZE).map(of_batch)

        return input_fn

    return inputs


def _sequential_head(e, *args, **kwargs):
    """Makes a `SequentialHeadWrapper`, which tf.estimator has, but does not export."""
    if hasattr(e.experimental, "SequentialHeadWrapper"):
        return e.experimental.SequentialHeadWrapper(*args, **kwargs)
    from tensorflow_estimator.python.estimator.head import sequential_head

    return sequential_head.SequentialHeadWrapper(*args, **kwargs)


SERVING_FEATURES = {
    "words": tf.io.VarLenFeature(tf.string),
    "amounts": tf.io.VarLenFeature(tf.float32),
    "size": tf.io.FixedLenFeature([1], tf.float32),
    "kind": tf.io.FixedLenFeature([1], tf.string),
}

WORD = fc.sequence_categorical_column_with_hash_bucket("words", 7)
KNOWN_WORD = fc.sequence_categorical_column_with_vocabulary_list(
    "words", [f"word{i}" for i in range(6)], num_oov_buckets=1
)
AMOUNTS = fc.sequence_numeric_column("amounts", shape=(2,))
# Not in the order of their names.
SEQUENCE = [fc.embedding_column(WORD, 3), AMOUNTS]
KIND = fc.categorical_column_with_hash_bucket("kind", 5)
CONTEXT = [fc.numeric_column("size"), fc.embedding_column(KIND, 2)]


def _classifier(label, *args, dense_labels=False, **arguments):
    return Program(
        _inputs(label, dense_labels),
        lambda e, **kw: e.experimental.RNNClassifier(*args, **arguments, **kw),
        SERVING_FEATURES,
    )


def _estimator(label, make_head, *args, dense_labels=False, program=None, **arguments):
    return Program(
        _inputs(label, dense_labels),
        lambda e, **kw: e.experimental.RNNEstimator(make_head(e), *args, **arguments, **kw),
        SERVING_FEATURES,
        **(program or {}),
    )


PROGRAMS = {
    "rnn_simple": _classifier("binary", SEQUENCE, units=[4]),
    "rnn_simple_one_layer": _classifier("binary", [AMOUNTS], units=4, cell_type="simple_rnn"),
    "rnn_lstm_context": _classifier(
        "grade", SEQUENCE, CONTEXT, units=[4, 3], cell_type="lstm", n_classes=3, weight_column="weight"
    ),
    "rnn_lstm_words": _classifier(
        "word",
        [fc.indicator_column(KNOWN_WORD)],
        units=3,
        cell_type="lstm",
        n_classes=3,
        label_vocabulary=list(GRADES),
        optimizer="SGD",
    ),
    "rnn_gru": _classifier("binary", SEQUENCE, CONTEXT, units=[3, 4], cell_type="gru"),
    "rnn_gru_one_layer": _classifier("binary", SEQUENCE, units=4, cell_type="gru", optimizer="Ftrl"),
    # Gradients of a sum of squares are far above the norm at which they are clipped.
    "rnn_regressor_clipped": _estimator(
        "number",
        lambda e: e.RegressionHead(loss_reduction="sum", name="price"),
        SEQUENCE,
        CONTEXT,
        units=[4],
        cell_type="gru",
    ),
    "rnn_regressor": _estimator(
        "numbers",
        lambda e: e.RegressionHead(label_dimension=2, weight_column="weight"),
        SEQUENCE,
        units=[3],
        cell_type="lstm",
    ),
    "rnn_cell_fn": _classifier(
        "binary",
        SEQUENCE,
        rnn_cell_fn=lambda: tf.keras.layers.StackedRNNCells(
            [tf.keras.layers.LSTMCell(4), tf.keras.layers.GRUCell(3)]
        ),
    ),
    "rnn_cell_class": _classifier("binary", SEQUENCE, units=[4], cell_type=tf.keras.layers.GRUCell),
    "rnn_sequences": _classifier("up", SEQUENCE, units=[4], cell_type="lstm", return_sequences=True),
    "rnn_sequences_weighted": _classifier(
        "course",
        SEQUENCE,
        CONTEXT,
        units=[3, 4],
        cell_type="gru",
        return_sequences=True,
        n_classes=3,
        weight_column="step_weights",
        label_vocabulary=list(GRADES),
        sequence_mask="valid",
        dense_labels=True,
    ),
    "rnn_sequences_regression": _estimator(
        "sum",
        lambda e: _sequential_head(
            e, e.RegressionHead(weight_column="step_weights", name="sum"), feature_columns=["step_weights"]
        ),
        [AMOUNTS],
        units=4,
        cell_type="simple_rnn",
        return_sequences=True,
    ),
    "rnn_sequences_multi_label": _estimator(
        "topics_by_step",
        lambda e: _sequential_head(e, e.MultiLabelHead(2), "mask"),
        SEQUENCE,
        units=[4],
        cell_type="gru",
        return_sequences=True,
        dense_labels=True,
    ),
    **{
        f"rnn_with_{name}": _estimator(
            label,
            make_head,
            SEQUENCE,
            units=[3],
            program={"slow": True, "seed": SEEDS.get(f"rnn_with_{name}")},
        )
        for name, (label, make_head) in HEADS.items()
    },
}

MODEL_DIRS = ["rnn_lstm_context", "rnn_cell_fn"]
