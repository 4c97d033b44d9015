"""Programs that run unchanged on tf.estimator 2.15 and on estimator_core.

Each entry of `PROGRAMS` takes the module (`tf.estimator` or `estimator_core`) with the keyword
arguments that both give to the constructor, and returns an Estimator. All train on `input_fn`.
"""

import numpy as np
import tensorflow as tf

BATCH_SIZE = 16
NUM_EXAMPLES = 96
STEPS = 40
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
    features = {
        "size": size,
        "place": place,
        "kind": np.array(KINDS)[kind],
        "floor": floor,
        "weight": weight,
    }
    labels = {
        "binary": (score > np.median(score)).astype(np.int64),
        "grade": np.digitize(score, np.quantile(score, [0.33, 0.66])).astype(np.int64),
        "number": score.astype(np.float32),
        "numbers": np.stack([score, size], axis=1).astype(np.float32),
    }
    labels["word"] = np.array(GRADES)[labels["grade"]]
    labels["share"] = (1.0 / (1.0 + np.exp(-score))).astype(np.float32)
    labels["count"] = np.floor(np.exp(0.3 * score)).astype(np.int64)
    labels["topics"] = np.stack([score > 0, size > 0, floor > 6], axis=1).astype(np.int64)
    labels["both"] = {"price": labels["number"], "topics": labels["topics"]}
    return features, labels, tags, tag_weights


FEATURES, LABELS, TAGS, TAG_WEIGHTS = _data()


def input_fn(label, repeat=None):
    """Returns an input_fn over all examples, in the same order each time.

    Args:
        label: Key of `LABELS`. With "_static" after it all features are dense, and the batch size is
            known to the graph: the Baselines of the reference fail without (a check of the batch
            gets between them and the initialization of their bias).
        repeat: How often; None is for ever.
    """

    def make_static_dataset():
        dataset = tf.data.Dataset.from_tensor_slices(
            (FEATURES, LABELS[label.removesuffix("_static")])
        )
        return dataset.repeat(repeat).batch(BATCH_SIZE, drop_remainder=True)

    def make_dataset():
        features = {
            **FEATURES,
            "tags": tf.ragged.constant(TAGS, dtype=tf.string),
            "tag_weights": tf.ragged.constant(TAG_WEIGHTS, dtype=tf.float32),
        }
        dataset = tf.data.Dataset.from_tensor_slices((features, LABELS[label]))
        dataset = dataset.repeat(repeat).batch(BATCH_SIZE)

        def sparse_tags(features, labels):
            sparse = {name: features[name].to_sparse() for name in ("tags", "tag_weights")}
            return {**features, **sparse}, labels

        return dataset.map(sparse_tags)

    return make_static_dataset if label.endswith("_static") else make_dataset


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

PROGRAMS = {
    "linear_classifier": (
        "binary",
        lambda e, **kw: e.LinearClassifier(LINEAR, **kw),
    ),
    "linear_classifier_words": (
        "word",
        lambda e, **kw: e.LinearClassifier(
            LINEAR, n_classes=3, label_vocabulary=list(GRADES), loss_reduction="sum", **kw
        ),
    ),
    "linear_regressor_weighted": (
        "number",
        lambda e, **kw: e.LinearRegressor(LINEAR, weight_column="weight", **kw),
    ),
    "linear_sparse_mean": (
        "binary",
        lambda e, **kw: e.LinearClassifier(
            [SIZE, WEIGHTED_TAG, KIND], sparse_combiner="mean", optimizer="Adagrad", **kw
        ),
    ),
    "linear_sparse_sgd": (
        "number",
        lambda e, **kw: e.LinearRegressor([SIZE, TAG], optimizer="SGD", **kw),
    ),
    "dnn_classifier": (
        "binary",
        lambda e, **kw: e.DNNClassifier([8, 4], DEEP, weight_column="weight", **kw),
    ),
    "dnn_classifier_batch_norm": (
        "grade",
        lambda e, **kw: e.DNNClassifier(
            [8, 4], DEEP, n_classes=3, batch_norm=True, activation_fn=tf.nn.tanh, **kw
        ),
    ),
    "dnn_regressor_adam": (
        "numbers",
        lambda e, **kw: e.DNNRegressor(
            [8], DEEP, label_dimension=2, optimizer="Adam", activation_fn=tf.nn.elu, **kw
        ),
    ),
    "dnn_regressor_rmsprop": (
        "number",
        lambda e, **kw: e.DNNRegressor(
            [6], [SIZE, fc.embedding_column(TAG, 4, combiner="sqrtn")], optimizer="RMSProp", **kw
        ),
    ),
    "combined_classifier": (
        "grade",
        lambda e, **kw: e.DNNLinearCombinedClassifier(
            linear_feature_columns=[KIND, SIZE_CLASS, SIZE_X_KIND],
            dnn_feature_columns=DEEP,
            dnn_hidden_units=[8, 4],
            n_classes=3,
            weight_column="weight",
            **kw,
        ),
    ),
    "combined_classifier_adam": (
        "binary",
        lambda e, **kw: e.DNNLinearCombinedClassifier(
            linear_feature_columns=[KIND, TAG],
            linear_optimizer="Adam",
            dnn_feature_columns=DEEP,
            dnn_optimizer="Adam",
            dnn_hidden_units=[8],
            linear_sparse_combiner="sqrtn",
            **kw,
        ),
    ),
    "combined_regressor": (
        "number",
        lambda e, **kw: e.DNNLinearCombinedRegressor(
            linear_feature_columns=LINEAR,
            linear_optimizer="SGD",
            dnn_feature_columns=DEEP,
            dnn_optimizer="Ftrl",
            dnn_hidden_units=[8],
            loss_reduction="sum",
            **kw,
        ),
    ),
    "estimator_with_head": (
        "binary",
        lambda e, **kw: e.DNNLinearCombinedEstimator(
            e.BinaryClassHead(thresholds=[0.25, 0.75], name="sold"),
            linear_feature_columns=LINEAR,
            dnn_feature_columns=DEEP,
            dnn_hidden_units=[4],
            **kw,
        ),
    ),
    "linear_logistic_regression": (
        "share",
        lambda e, **kw: e.LinearEstimator(
            e.LogisticRegressionHead(weight_column="weight", name="share"), LINEAR, **kw
        ),
    ),
    "linear_poisson_regression": (
        "count",
        lambda e, **kw: e.LinearEstimator(e.PoissonRegressionHead(), LINEAR, **kw),
    ),
    "dnn_multi_label": (
        "topics",
        lambda e, **kw: e.DNNEstimator(
            e.MultiLabelHead(
                3,
                weight_column="weight",
                thresholds=[0.4],
                label_vocabulary=["dear", "large", "high"],
                classes_for_class_based_metrics=["high", "dear"],
            ),
            [8],
            DEEP,
            **kw,
        ),
    ),
    "linear_multi_head": (
        "both",
        lambda e, **kw: e.LinearEstimator(
            e.MultiHead(
                [e.RegressionHead(name="price"), e.MultiLabelHead(3, name="topics")],
                head_weights=[1.0, 0.5],
            ),
            LINEAR,
            **kw,
        ),
    ),
    "baseline_classifier": (
        "word_static",
        lambda e, **kw: e.BaselineClassifier(
            n_classes=3, weight_column="weight", label_vocabulary=list(GRADES), **kw
        ),
    ),
    "baseline_regressor": (
        "numbers_static",
        lambda e, **kw: e.BaselineRegressor(
            label_dimension=2, optimizer="Adagrad", loss_reduction="sum", **kw
        ),
    ),
    "baseline_estimator": (
        "binary_static",
        lambda e, **kw: e.BaselineEstimator(e.BinaryClassHead(), **kw),
    ),
}
