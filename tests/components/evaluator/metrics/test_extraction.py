from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.gate.slice_columns import Codes
from components.evaluator.metrics.extraction import (
    Batch,
    ModelToEvaluate,
    RawFeatures,
    ReadAndEvaluate,
    align_classes,
    to_extracts,
)
from components.tfx.model_paths import eval_model_path
from tests.components.evaluator.conftest import FLOAT

CONFIG = text_format.Parse(
    """
    model_specs { example_weight_key: "weight" }
    slicing_specs {} slicing_specs { feature_keys: "hour" }
    slicing_specs { feature_values { key: "city" value: "Oslo" } }
    """,
    config_pb2.EvalConfig(),
)


def schema(*names):
    return schema_pb2.Schema(feature=[schema_pb2.Feature(name=name) for name in names])


def test_only_what_slices_and_weighs_is_decoded():
    found = RawFeatures.from_config(CONFIG, schema("fare", "city", "weight", "hour"))
    assert found.names == ("city", "hour", "weight")
    assert found.example_weight == "weight"
    projected = schema_pb2.Schema.FromString(found.serialized_schema or b"")
    assert [feature.name for feature in projected.feature] == ["city", "hour", "weight"]
    assert RawFeatures.from_config(CONFIG, None).serialized_schema is None
    assert RawFeatures.from_config(config_pb2.EvalConfig(), None) == RawFeatures()
    derived = RawFeatures.from_config(CONFIG, schema("city", "hour"), weight_key="weight")
    assert (derived.names, derived.example_weight) == (("city", "hour"), "weight")
    with pytest.raises(ValueError, match=r"by 'hour', which is not a raw feature.*: hours, fare"):
        RawFeatures.from_config(CONFIG, schema("fare", "hours", "city", "weight"))


def test_extracts_of_one_model_and_of_two():
    features = {"hour": [[7], None, [9]], "weight": [[1.0], [2.0], [0.5]]}
    batch = Batch(np.array([0, 1, 1]), {"": np.array([0.1, 0.2, 0.3])}, features)
    extracts = list(to_extracts(batch, "weight"))
    assert [e[tfma.LABELS_KEY].tolist() for e in extracts] == [[0], [1], [1]]
    assert [e[tfma.PREDICTIONS_KEY].tolist() for e in extracts] == [[0.1], [0.2], [0.3]]
    assert [e[tfma.EXAMPLE_WEIGHTS_KEY].tolist() for e in extracts] == [[1.0], [2.0], [0.5]]
    assert [sorted(e[tfma.FEATURES_KEY]) for e in extracts] == [
        ["hour", "weight"], ["weight"], ["hour", "weight"],
    ]  # fmt: skip
    assert tfma.EXAMPLE_WEIGHTS_KEY not in next(to_extracts(batch))
    predictions = {"candidate": np.array([[0.1, 0.9]]), "baseline": np.array([0.4])}
    (extract,) = to_extracts(Batch(np.array([1.0]), predictions, {}))
    found = {name: values.tolist() for name, values in extract[tfma.PREDICTIONS_KEY].items()}
    assert found == {"candidate": [0.1, 0.9], "baseline": [0.4]}


@pytest.fixture
def model(make_model):
    """A model whose prediction is 10 x; the label is whether x is above 2."""
    label = lambda f: tf.cast(f["x"] > 2, tf.int64)  # noqa: E731
    exported = make_model({"x": FLOAT}, predict=lambda f: {"predictions": 10 * f["x"]}, label=label)
    return ModelToEvaluate(name="", path=str(eval_model_path(exported.uri)))


def reader(model, *features, **settings):
    started = ReadAndEvaluate([model], *features, **settings)
    started.setup()
    return started


@pytest.mark.parametrize("values", [None, [], [1.0, 2.0]])
def test_each_example_needs_one_weight(values):
    batch = Batch(np.array([1, 0]), {}, {"weight": [[1.0], values]})
    with pytest.raises(ValueError, match="one value of 'weight'"):
        batch.example_weights("weight")


def test_a_file_is_read_in_batches_with_labels_predictions_and_features(model, make_examples):
    rows = [{"x": float(x), "hour": None if x == 2 else x} for x in range(5)]
    (file,) = Path(make_examples(rows).uri).glob("Split-eval/*")
    config = text_format.Parse('slicing_specs { feature_keys: "hour" }', config_pb2.EvalConfig())
    features = RawFeatures.from_config(config, None)
    batches = list(reader(model, features, batch_size=2).process(str(file)))
    assert [batch.labels.tolist() for batch in batches] == [[0, 0], [0, 1], [1]]
    assert [batch.predictions[""].tolist() for batch in batches] == [[0, 10], [20, 30], [40]]
    assert [batch.features["hour"] for batch in batches] == [[[0], [1]], [None, [3]], [[4]]]
    # Of labels alone, the weight is all that else is read.
    for names, weight, expected in (("hour", "", {}), ("hour x", "x", {"x": [[0.0], [1.0]]})):
        features = RawFeatures(tuple(names.split()), weight)
        batch = next(reader(model, features, batch_size=2, labels_only=True).process(str(file)))
        assert batch.labels.tolist() == [0, 0]
        assert {name: batch.features[name] for name in batch.features if name == weight} == expected
        assert bool(batch.features) == bool(weight)


def test_values_that_count_as_one_are_one_slice(model, make_examples):
    woods = ["oak", "n/a", " oak ", "-", None, "ash"]
    rows = [{"x": 1.0, **({"wood": wood} if wood else {})} for wood in woods]
    (file,) = Path(make_examples(rows).uri).glob("Split-eval/*")
    same = {"wood": {"n/a": "[missing]", "-": "[missing]", "": "[missing]"}, "x": {"1.0": "one"}}
    features = RawFeatures(("wood", "x"), categories=("wood",), same_values=same)
    (batch,) = reader(model, features).process(str(file))
    expected = ["oak", "[missing]", "oak", "[missing]", "[missing]", "ash"]
    assert batch.features["wood"] == [[name.encode()] for name in expected]
    assert batch.features["x"] == [[1.0]] * 6  # numbers stay as they are
    column = batch.columns["wood"]
    assert isinstance(column, Codes)
    assert [(column.names or ())[code] for code in column.codes] == expected


def test_examples_that_the_model_cannot_take_name_the_file(model, make_examples):
    (file,) = Path(make_examples([{"y": 1.0}]).uri).glob("Split-eval/*")
    with pytest.raises(RuntimeError, match=f"cannot take the examples of {file}"):
        list(reader(model, RawFeatures()).process(str(file)))


@pytest.mark.parametrize(
    ("predictions", "classes", "wanted", "expected"),
    [
        ([[0.7, 0.3]], ["a", "b"], ["a", "b"], [[0.7, 0.3]]),
        ([[0.7, 0.3]], ["b", "a"], ["a", "b", "c"], [[0.3, 0.7, 0]]),
        ([0.3], ["a", "b"], ["b", "a"], [0.7]),  # the probability of the second class
        ([0.3], ["a", "b"], ["a", "b", "c"], [[0.7, 0.3, 0]]),
        ([[0.5, 0.3, 0.2]], ["a", "b", "c"], ["a", "c"], [0.2]),
        ([4.5], None, ["a", "b"], [4.5]),
        ([4.5], ["a", "b", "c"], ["b", "a"], [4.5]),  # of something else than classes
    ],
)
def test_probabilities_in_the_order_of_other_classes(predictions, classes, wanted, expected):
    names = None if classes is None else np.array(classes)
    found = align_classes(np.array(predictions), names, np.array(wanted))
    np.testing.assert_allclose(found, expected)
