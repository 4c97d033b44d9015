"""Runs the text of docs/premade.md."""

import numpy as np
import pytest
import tensorflow as tf

from tests.docs.markdown import blocks, read

PREMADE, USE = blocks(read("docs/premade.md"), "python")

RNG = np.random.RandomState(0)
LEFT, RIGHT = RNG.randn(2, 400).astype(np.float32)
LABELS = (LEFT * RIGHT > 0).astype(np.int64)  # which neither says alone, nor their sum


def input_fn(repeat):
    features = {"left": LEFT, "right": RIGHT}
    return tf.data.Dataset.from_tensor_slices((features, LABELS)).repeat(repeat).batch(50)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The variables of the page's code blocks after they have run."""
    names = {
        "model_dir": str(tmp_path_factory.mktemp("model")),
        "train_input_fn": lambda: input_fn(None),
        "eval_input_fn": lambda: input_fn(1),
    }
    exec(PREMADE + USE, names)
    return names


@pytest.mark.more
def test_it_is_short_and_learns_what_no_linear_model_can(names):
    assert len(PREMADE.splitlines()) < 30
    assert names["metrics"]["accuracy"] > 0.9
    linear = names["estimator"].LinearClassifier(names["columns"])
    linear.train(lambda: input_fn(None), steps=200)
    assert linear.evaluate(lambda: input_fn(1))["accuracy"] < 0.65


def test_each_optimizer_trains_its_part(names):
    variables = set(names["model"].get_variable_names())
    assert {"factors", "training/Adam/factors/m"} <= variables
    assert "training/Ftrl/linear_model/left/weights/linear" in variables
    assert "training/Ftrl/factors/linear" not in variables


def test_the_exported_model_gives_the_logits_of_predict(names, tmp_path):
    model, estimator = names["model"], names["estimator"]
    spec = tf.feature_column.make_parse_example_spec(names["columns"])
    receiver_fn = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    loaded = tf.saved_model.load(model.export_saved_model(str(tmp_path), receiver_fn))
    feature = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        for name, value in (("left", LEFT[0]), ("right", RIGHT[0]))
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    served = loaded.signatures["predict"](examples=tf.constant([example]))
    predicted = next(model.predict(lambda: input_fn(1)))
    np.testing.assert_allclose(served["logits"][0], predicted["logits"], rtol=1e-5)
