"""Examples, input functions and feature columns that programs share."""

import numpy as np
import tensorflow as tf

BATCH_SIZE = 16
NUM_EXAMPLES = 96
KINDS = ("wood", "steel", "glass", "brick")
GRADES = ("low", "mid", "high")

fc = tf.feature_column


def _data():
    rng = np.random.RandomState(7)
    size = rng.randn(NUM_EXAMPLES).astype(np.float32)
    place = rng.rand(NUM_EXAMPLES, 2).astype(np.float32)
    kind = rng.randint(0, len(KINDS), NUM_EXAMPLES)
    floor = rng.randint(0, 10, NUM_EXAMPLES).astype(np.int64)
    weight = (rng.rand(NUM_EXAMPLES) + 0.1).astype(np.float32)
    # Several words for each example, some without any.
    num_tags = rng.randint(0, 4, NUM_EXAMPLES)
    tags = [[f"tag{i}" for i in rng.randint(0, 12, n)] for n in num_tags]
    tag_weights = [list(rng.rand(n).astype(np.float32) + 0.5) for n in num_tags]
    score = size + 2.0 * place[:, 0] - kind + 0.2 * floor + 0.5 * rng.randn(NUM_EXAMPLES)
    features = {"size": size, "place": place, "kind": np.array(KINDS)[kind], "floor": floor, "weight": weight}
    labels = {
        "binary": (score > np.median(score)).astype(np.int64),
        "grade": np.digitize(score, np.quantile(score, [0.33, 0.66])).astype(np.int64),
        "number": score.astype(np.float32),
        "numbers": np.stack([score, size], axis=1).astype(np.float32),
    }
    labels["word"] = np.array(GRADES)[labels["grade"]]
    labels["yes_or_no"] = np.array(["no", "yes"])[labels["binary"]]
    labels["share"] = (1.0 / (1.0 + np.exp(-score))).astype(np.float32)
    labels["count"] = np.floor(np.exp(0.3 * score)).astype(np.int64)
    labels["topics"] = np.stack([score > 0, size > 0, floor > 6], axis=1).astype(np.int64)
    labels["both"] = {"price": labels["number"], "topics": labels["topics"]}
    return features, labels, tags, tag_weights


FEATURES, LABELS, TAGS, TAG_WEIGHTS = _data()


def dense(label):
    """Returns a `Program`'s inputs without the sparse features, with a batch size the graph knows.

    The Baselines of the reference fail without: a check of the batch gets between them and the
    initialization of their bias.
    """

    def inputs(repeat=None):
        def input_fn():
            dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS[label]))
            return dataset.repeat(repeat).batch(BATCH_SIZE, drop_remainder=True)

        return input_fn

    return inputs


def with_tags(label, **more):
    """Returns a `Program`'s inputs: all features, the sparse ones included, and one of `LABELS`.

    Args:
        label: Name of the label.
        more: Further features: an array, or a list of lists, which becomes sparse.
    """

    def with_sparse(features, labels):
        ragged = {k: v for k, v in features.items() if isinstance(v, tf.RaggedTensor)}
        return {**features, **{k: v.to_sparse() for k, v in ragged.items()}}, labels

    def inputs(repeat=None):
        def input_fn():
            features = {**FEATURES, "tags": TAGS, "tag_weights": TAG_WEIGHTS, **more}
            features = {
                name: tf.ragged.constant(value) if isinstance(value, list) else value
                for name, value in features.items()
            }
            dataset = tf.data.Dataset.from_tensor_slices((features, LABELS[label]))
            return dataset.repeat(repeat).batch(BATCH_SIZE).map(with_sparse)

        return input_fn

    return inputs


SERVING_FEATURES = {
    "size": tf.io.FixedLenFeature([1], tf.float32),
    "place": tf.io.FixedLenFeature([2], tf.float32),
    "kind": tf.io.FixedLenFeature([1], tf.string),
    "floor": tf.io.FixedLenFeature([1], tf.int64),
    "tags": tf.io.VarLenFeature(tf.string),
    "tag_weights": tf.io.VarLenFeature(tf.float32),
}


SIZE = fc.numeric_column("size")
PLACE = fc.numeric_column("place", shape=(2,))
KIND = fc.categorical_column_with_vocabulary_list("kind", KINDS[:3], num_oov_buckets=1)
FLOOR = fc.categorical_column_with_identity("floor", 10)
SIZE_CLASS = fc.bucketized_column(SIZE, [-1.0, 0.0, 1.0])
SIZE_X_KIND = fc.crossed_column([SIZE_CLASS, "kind"], 20)
TAG = fc.categorical_column_with_hash_bucket("tags", 8)
WEIGHTED_TAG = fc.weighted_categorical_column(TAG, "tag_weights")
LINEAR = [SIZE, PLACE, KIND, FLOOR, SIZE_CLASS, SIZE_X_KIND]
DEEP = [SIZE, PLACE, fc.indicator_column(KIND), fc.embedding_column(FLOOR, 3), SIZE_CLASS]
