import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import counting, example

WORD = "wörd / 'a' b"  # a name of a column is any text
SPEC = {
    "x": tf.io.VarLenFeature(tf.float32),
    "n": tf.io.VarLenFeature(tf.int64),
    WORD: tf.io.VarLenFeature(tf.string),
    "fixed": tf.io.FixedLenFeature([1], tf.float32, default_value=7.0),
}
MISSING = {"x": float("nan"), "n": -(2**63), WORD: "", "fixed": float("nan")}


def model_fn(features, labels, mode):
    def dense(name, default):
        column = features[name]
        column = tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1])
        return tf.sparse.to_dense(column, default)[:, 0]

    predictions = {"x": dense("x", -1.0), "n": dense("n", -2), "word": dense(WORD, "none")}
    predictions["fixed"] = features["fixed"][:, 0]
    serving = est.export.ClassificationOutput(scores=predictions["fixed"])
    outputs = {"serving_default": serving, "predict": est.export.PredictOutput(predictions)}
    return counting(mode, tf.constant(0.0), predictions=predictions, export_outputs=outputs)


def loaded(model_fn, spec, folder, **features):
    """The SavedModel of a model that was trained for a step on an example."""

    def input_fn():
        return tf.data.Dataset.from_tensors((tf.io.parse_example([example(**features)], spec), [0.0]))

    estimator = est.Estimator(model_fn, model_dir=str(folder / "model")).train(input_fn, steps=1)
    receiver_fn = est.export.build_rows_serving_input_receiver_fn(spec)
    return tf.saved_model.load(estimator.export_saved_model(str(folder / "export"), receiver_fn).decode())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return loaded(model_fn, SPEC, tmp_path_factory.mktemp("rows"), x=1.0)


def lists(outputs):
    return {name: value.numpy().tolist() for name, value in outputs.items()}


def test_there_is_one_signature_of_rows_beside_those_of_examples(model):
    assert sorted(model.signatures) == ["predict", "serving_default", "serving_rows"]
    inputs = model.signatures["serving_rows"].structured_input_signature[1]
    assert {name: (spec.dtype, spec.shape.as_list()) for name, spec in inputs.items()} == {
        name: (kind.dtype, [None]) for name, kind in SPEC.items()
    }


def test_rows_and_examples_have_the_same_predictions(model):
    examples = [example(x=1.5, n=3, fixed=2.0, **{WORD: b"a"}), example(), example(n=0, **{WORD: b"b"})]
    rows = {
        "x": [1.5, MISSING["x"], MISSING["x"]],
        "n": [3, MISSING["n"], 0],
        WORD: ["a", "", "b"],
        "fixed": [2.0, MISSING["fixed"], MISSING["fixed"]],
    }
    expected = {
        "x": [1.5, -1.0, -1.0],
        "n": [3, -2, 0],
        "word": [b"a", b"none", b"b"],
        "fixed": [2.0, 7.0, 7.0],
    }
    tensors = {name: tf.constant(values, SPEC[name].dtype) for name, values in rows.items()}
    assert lists(model.signatures["serving_rows"](**tensors)) == expected
    assert lists(model.signatures["predict"](examples=tf.constant(examples))) == expected


def test_nan_in_an_example_stays_a_value(model):
    found = model.signatures["predict"](examples=tf.constant([example(x=float("nan"))]))
    assert np.isnan(found["x"].numpy()).tolist() == [True]


def test_rows_without_any_value_are_rows(model):
    tensors = {name: tf.constant([value] * 2, SPEC[name].dtype) for name, value in MISSING.items()}
    assert lists(model.signatures["serving_rows"](**tensors))["x"] == [-1.0, -1.0]


@pytest.mark.parametrize(
    "kind",
    [
        tf.io.FixedLenFeature([2], tf.float32),
        tf.io.RaggedFeature(tf.float32),
        tf.io.VarLenFeature(tf.float64),
    ],
)
def test_a_feature_that_is_no_column_is_refused(kind):
    with pytest.raises(ValueError, match=r"VarLenFeature, or a FixedLenFeature .* 'x': "):
        est.export.build_rows_serving_input_receiver_fn({"x": kind})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("names", [["class", "x"], ["m\u00b2"], ["a b", "a-b"], ["7"], ["None"]])
def test_without_a_name_that_tensorflow_can_load_there_are_no_rows(names, tmp_path, caplog):
    def predict_first(features, labels, mode):
        numbers = tf.sparse.reduce_sum(features[names[0]], axis=1)
        return counting(mode, tf.constant(0.0), predictions={"number": numbers})

    spec = {name: tf.io.VarLenFeature(tf.float32) for name in names}
    signatures = loaded(predict_first, spec, tmp_path, **{names[0]: 1.0}).signatures
    has_rows = names == ["7"]
    assert ("serving_rows" in signatures) is has_rows
    assert ("has no signature 'serving_rows'" in caplog.text) is not has_rows
    if has_rows:
        found = signatures["serving_rows"](**{"7": tf.constant([2.5])})
    else:
        found = signatures["serving_default"](examples=tf.constant([example(**{names[0]: 2.5})]))
    assert found["number"].numpy().tolist() == [2.5]
