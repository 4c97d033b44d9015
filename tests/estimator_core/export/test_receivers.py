import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import example

export = est.export


X, Y = tf.constant([1.0]), tf.constant([2.0])


def test_dicts_stay_as_they_are():
    sparse = tf.sparse.from_dense([[1]])
    ragged = tf.ragged.constant([[1], []])
    receiver = export.ServingInputReceiver({"x": X, "s": sparse, 3: ragged}, {"in": X})
    assert receiver.features == {"x": X, "s": sparse, 3: ragged}
    assert receiver.receiver_tensors == {"in": X}
    assert receiver.receiver_tensors_alternatives is None


def test_single_tensors_get_names_but_for_a_bare_feature():
    receiver = export.ServingInputReceiver(X, Y, {"other": Y, "both": {"a": X, "b": Y}})
    assert receiver.features == {"feature": X}
    assert receiver.receiver_tensors == {"input": Y}
    assert receiver.receiver_tensors_alternatives == {"other": {"input": Y}, "both": {"a": X, "b": Y}}
    receiver = export.TensorServingInputReceiver(X, Y, {"other": X})
    assert receiver.features is X
    assert receiver.receiver_tensors == {"input": Y}
    assert receiver.receiver_tensors_alternatives == {"other": {"input": X}}


def test_labels_are_kept_as_they_are():
    assert export.EvalInputReceiver(X, Y, Y) == ({"feature": X}, {"input": Y}, Y)
    labels = {"a": X, "b": Y}
    assert export.EvalInputReceiver({"x": X}, {"in": Y}, labels).labels is labels


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: export.ServingInputReceiver(None, X), "one of them is None"),
        (lambda: export.ServingInputReceiver(X, None), "one of them is None"),
        (lambda: export.ServingInputReceiver({("a", "b"): X}, X), "feature keys must be strings"),
        (lambda: export.ServingInputReceiver({"x": [1.0]}, X), "feature 'x' must be a Tensor"),
        (lambda: export.ServingInputReceiver(X, {"in": 1}), "receiver_tensors 'in' must be"),
        (lambda: export.ServingInputReceiver(X, {3: X}), "receiver_tensors keys must be strings"),
        (lambda: export.ServingInputReceiver(X, X, {"a": {3: X}}), "alternatives keys must be strings"),
        (lambda: export.ServingInputReceiver(X, X, [X]), "alternatives must be a dict"),
        (lambda: export.ServingInputReceiver(X, X, {"a": 1}), "alternatives 'input' must be a"),
        (lambda: export.TensorServingInputReceiver(None, X), "features=None"),
        (lambda: export.TensorServingInputReceiver({"x": X}, X), "use ServingInputReceiver"),
        (lambda: export.TensorServingInputReceiver([1.0], X), "must be a Tensor"),
        (lambda: export.TensorServingInputReceiver(X, None), "one of them is None"),
        (lambda: export.EvalInputReceiver(None, X, X), "one is None"),
        (lambda: export.EvalInputReceiver(X, None, X), "one is None"),
        (lambda: export.EvalInputReceiver(X, X, None), "one is None"),
        (lambda: export.EvalInputReceiver(X, X, [1.0]), "label 'label' must be a Tensor"),
        (lambda: export.EvalInputReceiver(X, X, {"y": 1.0}), "label 'y' must be a Tensor"),
    ],
)
def test_what_can_not_be_received(make, message):
    with pytest.raises(ValueError, match=message):
        make()


SPEC = {"x": tf.io.FixedLenFeature([2], tf.float32), "words": tf.io.VarLenFeature(tf.string)}


@pytest.mark.parametrize(("settings", "size"), [({}, None), ({"default_batch_size": 3}, 3)])
def test_examples_are_parsed(settings, size, session):
    receiver = export.build_parsing_serving_input_receiver_fn(SPEC, **settings)()
    assert list(receiver.receiver_tensors) == ["examples"]
    examples = receiver.receiver_tensors["examples"]
    assert (examples.dtype, examples.shape.as_list()) == (tf.string, [size])
    assert examples.op.name == "input_example_tensor"
    assert receiver.features["x"].shape.as_list() == [size, 2]
    fed = [example(x=[1.0, 2.0], words=[b"a", b"b"]), example(x=[3.0, 4.0]), example(x=[5.0, 6.0])]
    found = session.run(receiver.features, {examples: fed})
    assert found["x"].tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert found["words"].values.tolist() == [b"a", b"b"]


@pytest.mark.parametrize(("settings", "size"), [({}, None), ({"default_batch_size": 3}, 3)])
def test_raw_tensors_have_placeholders_of_their_shape(settings, size):
    features = {"tensor": tf.zeros([7, 2]), "spec": tf.TensorSpec([None, 4], tf.int64)}
    features |= {"array": np.zeros([5], np.float64), "words": ["a", "b"]}
    receiver_fn = export.build_raw_serving_input_receiver_fn(features, **settings)
    with tf.Graph().as_default() as graph:
        receiver = receiver_fn()
    assert receiver.features == receiver.receiver_tensors
    assert {name: (t.dtype, t.shape.as_list()) for name, t in receiver.features.items()} == {
        "tensor": (tf.float32, [size, 2]),
        "spec": (tf.int64, [size, 4]),
        "array": (tf.float64, [size]),
        "words": (tf.string, [size]),
    }
    assert {t.op.type for t in receiver.features.values()} == {"Placeholder"}
    assert {op.name for op in graph.get_operations()} == set(features)


def test_raw_tensors_need_a_batch_dimension_unless_their_shape_is_unknown(graph):
    with pytest.raises(ValueError, match="'x' needs a batch dimension"):
        export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([])})
    receiver_fn = export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec(None)}, 3)
    assert receiver_fn().features["x"].shape.rank is None


@pytest.mark.parametrize(
    ("feature", "op"),
    [
        ("fare", "fare"),
        ("a/b-c.d_1", "a/b-c.d_1"),
        ("pick up (km)", "pick_up__km_"),
        ("größe", "gr__e"),
        ("_hidden", "input__hidden"),
        ("", "input_"),
        ("7th", "7th"),
        ("²", "input__"),
    ],
)
def test_placeholders_are_named_as_the_features_are(feature, op, graph):
    receiver = export.build_raw_serving_input_receiver_fn({feature: tf.TensorSpec([None])})()
    assert receiver.features[feature].op.name == op
