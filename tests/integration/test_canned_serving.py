"""The exported model of every canned type answers as its `predict` does.

Fed with serialized tf.Examples and with raw tensors, with one example and with 1,000, among which
are words that no vocabulary has, and examples without the features that are optional.
"""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est

pytestmark = pytest.mark.more

fc = tf.feature_column
experimental = est.experimental

NUM_EXAMPLES = 1000
DEFAULT_ROOMS = 3.0
KINDS = ["flat", "house", "barn"]
UNKNOWN = "castle"
MISSING = ""  # in dense tensors of words
GRADES = ["low", "mid", "high"]

RNG = np.random.RandomState(1)
SIZE = RNG.randn(NUM_EXAMPLES, 1).astype(np.float32)
ROOMS = RNG.randint(1, 8, [NUM_EXAMPLES, 1]).astype(np.float32)
HAS_ROOMS = RNG.rand(NUM_EXAMPLES, 1) > 0.3
KIND = np.array([*KINDS, UNKNOWN, MISSING])[RNG.randint(0, 5, [NUM_EXAMPLES, 1])]
NOTES = np.array([*KINDS, UNKNOWN])[RNG.randint(0, 4, [NUM_EXAMPLES, 4])]
NOTES[np.arange(4) >= RNG.randint(1, 5, [NUM_EXAMPLES, 1])] = MISSING  # notes of one to four words
NOTES[:5], KIND[0], KIND[1], HAS_ROOMS[2] = UNKNOWN, UNKNOWN, MISSING, False

FEATURES = {
    "size": SIZE,
    "rooms": np.where(HAS_ROOMS, ROOMS, np.float32(DEFAULT_ROOMS)),
    "kind": KIND,
    "notes": NOTES,
    "id": np.array([f"{i}" for i in range(NUM_EXAMPLES)]).reshape(-1, 1),
}
PARSE_SPEC = {
    "size": tf.io.FixedLenFeature([1], tf.float32),
    "rooms": tf.io.FixedLenFeature([1], tf.float32, default_value=[DEFAULT_ROOMS]),
    "kind": tf.io.VarLenFeature(tf.string),
    "notes": tf.io.VarLenFeature(tf.string),
}
RAW_SPEC = {
    "size": tf.TensorSpec([None, 1], tf.float32),
    "rooms": tf.TensorSpec([None, 1], tf.float32),
    "kind": tf.TensorSpec([None, 1], tf.string),
    "notes": tf.TensorSpec([None, None], tf.string),
}

SIZE_COLUMN = fc.numeric_column("size")
ROOMS_COLUMN = fc.numeric_column("rooms")
KIND_COLUMN = fc.categorical_column_with_vocabulary_list("kind", KINDS)
NOTES_COLUMN = fc.sequence_categorical_column_with_vocabulary_list("notes", KINDS)
ROOMS_CLASS = fc.bucketized_column(ROOMS_COLUMN, [2.0, 4.0])
SIZE_CLASS = fc.bucketized_column(SIZE_COLUMN, [0.0])
LINEAR = [SIZE_COLUMN, KIND_COLUMN, ROOMS_CLASS, fc.crossed_column([ROOMS_CLASS, SIZE_CLASS], 10)]
DEEP = [SIZE_COLUMN, ROOMS_COLUMN, fc.embedding_column(KIND_COLUMN, 3)]
COMBINED = {"linear_feature_columns": LINEAR, "dnn_feature_columns": DEEP, "dnn_hidden_units": [4]}
WORDS = [fc.embedding_column(NOTES_COLUMN, 3)]

LABELS = {
    "binary": (SIZE[:, 0] + ROOMS[:, 0] > 4).astype(np.int64),
    "number": SIZE[:, 0] * 2 + ROOMS[:, 0],
    "numbers": np.concatenate([SIZE, ROOMS], axis=1),
    "topics": np.concatenate([SIZE > 0, ROOMS > 3, KIND == "flat"], axis=1).astype(np.int64),
    "none": None,
}
LABELS["word"] = np.array(GRADES)[np.digitize(LABELS["number"], [2.0, 6.0])]

DNN = {"hidden_units": [4], "feature_columns": DEEP}
OF_GRADES = {"n_classes": 3, "label_vocabulary": GRADES}
GRADE_HEAD = est.MultiClassHead(3, label_vocabulary=GRADES)
SDCA = experimental.LinearSDCA("id")
RNN = {"sequence_feature_columns": WORDS, "units": [4], "context_feature_columns": [ROOMS_COLUMN]}

# Name to the labels, the Estimator and its arguments but for the config.
TYPES = {
    "LinearClassifier": ("binary", est.LinearClassifier, {"feature_columns": LINEAR}),
    "LinearClassifier with LinearSDCA": (
        "binary", est.LinearClassifier, {"feature_columns": LINEAR, "optimizer": SDCA},
    ),
    "LinearRegressor": ("number", est.LinearRegressor, {"feature_columns": LINEAR}),
    "LinearEstimator": (
        "topics", est.LinearEstimator, {"head": est.MultiLabelHead(3), "feature_columns": LINEAR},
    ),
    "DNNClassifier": ("word", est.DNNClassifier, {**DNN, **OF_GRADES, "batch_norm": True, "dropout": 0.2}),
    "DNNRegressor": ("numbers", est.DNNRegressor, {**DNN, "label_dimension": 2}),
    "DNNEstimator": ("number", est.DNNEstimator, {**DNN, "head": est.RegressionHead(inverse_link_fn=tf.exp)}),
    "DNNLinearCombinedClassifier": ("binary", est.DNNLinearCombinedClassifier, COMBINED),
    "DNNLinearCombinedRegressor": ("number", est.DNNLinearCombinedRegressor, COMBINED),
    "DNNLinearCombinedEstimator": ("word", est.DNNLinearCombinedEstimator, {**COMBINED, "head": GRADE_HEAD}),
    "BaselineClassifier": ("word", est.BaselineClassifier, OF_GRADES),
    "BaselineRegressor": ("number", est.BaselineRegressor, {}),
    "BaselineEstimator": ("topics", est.BaselineEstimator, {"head": est.MultiLabelHead(3)}),
    "RNNClassifier": ("binary", experimental.RNNClassifier, RNN),
    "RNNEstimator": (
        "number",
        experimental.RNNEstimator,
        {
            **RNN, "head": est.RegressionHead(), "units": [4, 3], "cell_type": "lstm",
            "context_feature_columns": [SIZE_COLUMN],
        },
    ),
    "KMeans": (
        "none", experimental.KMeans, {"num_clusters": 4, "feature_columns": [SIZE_COLUMN, ROOMS_COLUMN]},
    ),
}  # fmt: skip


def train_input_fn(label):
    examples = FEATURES if LABELS[label] is None else (FEATURES, LABELS[label])
    return lambda: tf.data.Dataset.from_tensor_slices(examples).repeat().batch(50)


def serialized(index):
    """Returns one tf.Example; missing features are left out."""

    def of_floats(values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    def of_words(words):
        values = [word.encode() for word in words if word != MISSING]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    feature = {"size": of_floats(SIZE[index]), "notes": of_words(NOTES[index])}
    if KIND[index, 0] != MISSING:
        feature["kind"] = of_words(KIND[index])
    if HAS_ROOMS[index, 0]:
        feature["rooms"] = of_floats(ROOMS[index])
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def type_params():
    """The types with a head export the same as the classifiers and regressors with such a head."""
    for name in TYPES:
        yield pytest.param(name, marks=pytest.mark.slow if name.endswith("Estimator") else ())


@pytest.fixture(scope="module", params=type_params())
def served(request, tmp_path_factory):
    """The signatures of the two exported models, and the answers of `predict` to all examples."""
    label, kind, arguments = TYPES[request.param]
    directory = tmp_path_factory.mktemp("served")
    config = est.RunConfig(model_dir=str(directory / "model"), tf_random_seed=1)
    model = kind(**arguments, config=config).train(train_input_fn(label), steps=5)
    receivers = {
        "parsing": est.export.build_parsing_serving_input_receiver_fn(PARSE_SPEC),
        "raw": est.export.build_raw_serving_input_receiver_fn(RAW_SPEC),
    }
    loaded = {
        name: tf.saved_model.load(model.export_saved_model(str(directory / name), receiver_fn))
        for name, receiver_fn in receivers.items()
    }
    dataset = tf.data.Dataset.from_tensors
    (predictions,) = model.predict(lambda: dataset(FEATURES), yield_single_examples=False)
    signatures = {name: model.signatures for name, model in loaded.items()}
    return request.param, signatures, predictions, loaded


def expected_outputs(signature, predictions, outputs):
    """Returns by output name the expected answer of the signature, in terms of the predictions."""
    if "all_distances" in predictions:
        key = "all_distances" if signature == "all_distances" else "cluster_index"
        return {"output": predictions[key]}
    if set(outputs) == {"classes", "scores"}:
        names = predictions.get("all_classes")
        if names is None:  # several labels at once: the classes are numbered
            shape = predictions["probabilities"].shape
            names = np.broadcast_to(np.arange(shape[-1]).astype(str).astype("S"), shape)
        return {"classes": names, "scores": predictions["probabilities"]}
    if set(outputs) == {"outputs"}:
        return {"outputs": predictions.get("logistic", predictions.get("predictions"))}
    return predictions


def check(name, signature, outputs, predictions, rows):
    expected = expected_outputs(signature, predictions, outputs)
    assert set(outputs) == set(expected), (name, signature)
    for key, values in expected.items():
        got, wanted = outputs[key].numpy(), values[rows]
        if wanted.dtype.kind in "OS":
            assert got.tolist() == wanted.tolist(), (name, signature, key)
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6, err_msg=key)


BATCHES = [[0], [1], [2], range(NUM_EXAMPLES)]  # an unknown word, a missing one, missing rooms, all


def test_serialized_examples_and_raw_tensors_are_answered_as_by_predict_in_all_signatures(served):
    name, signatures, predictions, _ = served
    for signature, function in signatures["parsing"].items():
        (feed,) = function.structured_input_signature[1]
        for rows in BATCHES:
            examples = tf.constant([serialized(row) for row in rows])
            check(name, signature, function(**{feed: examples}), predictions, rows)
    for signature, function in signatures["raw"].items():
        feeds = function.structured_input_signature[1]
        assert set(feeds) == set(RAW_SPEC)
        for rows in BATCHES:
            tensors = {feed: tf.constant(FEATURES[feed][list(rows)]) for feed in feeds}
            check(name, signature, function(**tensors), predictions, rows)
    if name == "KMeans":
        wanted = {"parsing": CLUSTERS, "raw": CLUSTERS}
    elif "logistic" in predictions:
        wanted = {"parsing": CLASSIFIES | REGRESSES, "raw": {"predict"}}
    elif "probabilities" in predictions:
        wanted = {"parsing": CLASSIFIES, "raw": {"predict"}}
    else:
        wanted = {"parsing": REGRESSES, "raw": {"predict"}}
    assert {kind: set(found) for kind, found in signatures.items()} == wanted


CLASSIFIES = {"serving_default", "predict", "classification"}
REGRESSES = {"serving_default", "predict", "regression"}
CLUSTERS = {"serving_default", "all_distances", "cluster_index"}
