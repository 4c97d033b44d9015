import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import inputs
from estimator_core.inputs import in_memory


def _batches(input_fn):
    return list(input_fn().as_numpy_iterator())


def test_batches_run_across_epochs():
    x = {"a": np.arange(3.0), "b": np.arange(6).reshape(3, 2)}
    input_fn = inputs.numpy_input_fn(x, np.arange(10, 13), 2, num_epochs=2, shuffle=False)
    batches = _batches(input_fn)
    assert [labels.tolist() for _, labels in batches] == [[10, 11], [12, 10], [11, 12]]
    assert batches[1][0]["b"].tolist() == [[4, 5], [0, 1]]
    assert input_fn().element_spec[0]["b"] == tf.TensorSpec([None, 2], tf.int64)


def test_only_the_last_batch_is_smaller():
    input_fn = inputs.numpy_input_fn(np.arange(5), batch_size=2, shuffle=False)
    assert [batch.tolist() for batch in _batches(input_fn)] == [[0, 1], [2, 3], [4]]


def test_shuffling_keeps_features_and_labels_together():
    input_fn = inputs.numpy_input_fn({"a": np.arange(50)}, np.arange(50) * 2, 50, shuffle=True)
    ((features, labels),) = _batches(input_fn)
    assert features["a"].tolist() != list(range(50))
    assert sorted(features["a"]) == list(range(50))
    np.testing.assert_array_equal(labels, features["a"] * 2)


@pytest.mark.parametrize("words", [["a", "ä"], np.array(["a", "ä"], object), [b"a", "ä".encode()]])
def test_strings_arrive_as_utf8(words):
    (batch,) = _batches(inputs.numpy_input_fn({"w": np.array(words)}, shuffle=False))
    assert batch["w"].tolist() == [b"a", "ä".encode()]


def test_each_pass_has_all_rows_in_an_order_of_its_own():
    input_fn = inputs.numpy_input_fn(np.arange(50), batch_size=8, num_epochs=3, shuffle=True)
    batches = [batch.tolist() for batch in input_fn().as_numpy_iterator()]
    assert [len(batch) for batch in batches] == [8] * 18 + [6]
    rows = [row for batch in batches for row in batch]
    passes = [rows[:50], rows[50:100], rows[100:]]
    assert [sorted(one) for one in passes] == [list(range(50))] * 3
    assert len(set(map(tuple, [*passes, range(50)]))) == 4


def test_the_order_is_that_of_the_seed():
    """The same training again, with `tf_random_seed`."""

    def orders(seed):
        input_fn = inputs.numpy_input_fn({"x": np.arange(20.0)}, batch_size=5, num_epochs=2, shuffle=True)
        with tf.Graph().as_default():
            tf1.set_random_seed(seed)
            iterator = tf1.data.make_initializable_iterator(input_fn(est.ModeKeys.TRAIN))
            batch = iterator.get_next()["x"]
            with tf1.Session() as session:
                session.run(iterator.initializer)
                return [session.run(batch).tolist() for _ in range(8)]

    first = orders(3)
    assert orders(3) == first
    assert orders(4) != first
    assert first[:4] != first[4:]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("num_epochs", [2, None])
def test_no_rows_are_no_batches(shuffle, num_epochs):
    input_fn = inputs.numpy_input_fn(np.zeros([0, 3]), num_epochs=num_epochs, shuffle=shuffle)
    assert list(input_fn()) == []


def test_few_rows_are_repeated_within_a_batch():
    input_fn = inputs.numpy_input_fn(np.arange(3), batch_size=7, num_epochs=None, shuffle=False)
    batches = [batch.tolist() for batch in input_fn().take(2).as_numpy_iterator()]
    assert batches == [[0, 1, 2, 0, 1, 2, 0], [1, 2, 0, 1, 2, 0, 1]]


@pytest.mark.parametrize(("columns", "rows_in_a_call"), [(2, 64), (20_000, 4)])
def test_several_small_batches_are_taken_together(monkeypatch, columns, rows_in_a_call):
    """16 batches of 4 rows; of rows of 160 kB, one batch."""
    calls = []
    take = in_memory._take
    monkeypatch.setattr(in_memory, "_take", lambda *args: take(*noted(*args)))

    def noted(elements, index):
        tf.py_function(lambda i: calls.append(len(i)), [index], [])
        return elements, index

    input_fn = inputs.numpy_input_fn(np.zeros([130, columns]), batch_size=4, shuffle=False)
    assert [len(batch) for batch in input_fn()] == [4] * 32 + [2]
    assert max(calls) == rows_in_a_call
    assert sum(calls) == 130


@pytest.mark.parametrize("words", [np.array([b"ab\0\0", "ä\0"], object), [b"ab\0\0", "ä\0".encode()]])
def test_strings_keep_the_nulls_at_their_end(words):
    """Serialized protos end in them."""
    (batch,) = _batches(inputs.numpy_input_fn({"w": words}, shuffle=False))
    assert batch["w"].tolist() == [b"ab\0\0", "ä\0".encode()]


@pytest.mark.parametrize(
    ("values", "received"),
    [
        (["x", None, float("nan")], "None of type NoneType at position 1"),
        ([b"x", "y", float("nan")], "nan of type float at position 2"),
        ([3, 4, 5], "3 of type int at position 0"),
    ],
)
def test_objects_that_are_no_strings_are_refused(values, received):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "w": pd.Series(values, dtype=object)})
    with pytest.raises(ValueError, match=rf"x\['w'\].*fillna.*astype.*Received: {received}"):
        inputs.pandas_input_fn(frame, shuffle=False)
    with pytest.raises(ValueError, match=rf"^y is an array.*Received: {received}"):
        inputs.pandas_input_fn(frame[["a"]], frame["w"], shuffle=False)


def test_data_stay_outside_of_the_graph():
    input_fn = inputs.numpy_input_fn(np.zeros([1000, 1000]), shuffle=False)
    with tf.Graph().as_default() as graph:
        tf.compat.v1.data.make_initializable_iterator(input_fn("train"))
    assert graph.as_graph_def().ByteSize() < 100_000


TWO, THREE = np.arange(2), np.arange(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": TWO, "shuffle": None}, "explicitly set as boolean"),
        ({"x": {}}, "empty dict"),
        ({"x": TWO, "y": {}}, "empty dict"),
        ({"x": {"a": TWO, "b": THREE}}, "mismatched"),
        ({"x": TWO, "y": THREE}, "mismatched"),
        ({"x": TWO, "batch_size": 0}, "batch_size=0"),
        ({"x": {"a": TWO, "b": TWO}, "y": {"b": TWO}}, r"keys in common.*Received: \['b'\]"),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        inputs.numpy_input_fn(**{"shuffle": True, **arguments})


@pytest.mark.parametrize("x", [[1, 2], (1, 2), 3, None, "ab", pd.Series([1, 2])], ids=repr)
def test_features_without_a_shape_are_refused(x):
    with pytest.raises(TypeError, match="x must be a dict or array"):
        inputs.numpy_input_fn(x, shuffle=False)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pd.Series([0, 1]), [0, 1]),
        (pd.DataFrame({"p": [0, 1], "q": [2, 3]}), {"p": [0, 1], "q": [2, 3]}),
        (pd.DataFrame({"a": [0, 1]}), {"a": [0, 1]}),  # a name that features have as well
    ],
    ids=["series", "frame", "same name"],
)
def test_data_frames_become_features_by_column(labels, expected):
    frame = pd.DataFrame({"a": [1.0, 2.0], "w": ["x", "y"]})
    ((features, found),) = _batches(inputs.pandas_input_fn(frame, labels, shuffle=False))
    assert (features["a"].tolist(), features["w"].tolist()) == ([1, 2], [b"x", b"y"])
    assert tf.nest.map_structure(np.ndarray.tolist, found) == expected


def test_bad_frames_are_refused():
    frame = pd.DataFrame({"target": [1.0, 2.0]})
    labels = pd.Series([0, 1])
    with pytest.raises(ValueError, match="'target' already"):
        inputs.pandas_input_fn(frame, labels, shuffle=False)
    with pytest.raises(ValueError, match="mismatched"):
        inputs.pandas_input_fn(frame, pd.Series([0, 1], index=[5, 6]), shuffle=False)
    with pytest.raises(TypeError, match="DataFrame"):
        inputs.pandas_input_fn([1], shuffle=False)
    with pytest.raises(TypeError, match="target_column=3"):
        inputs.pandas_input_fn(frame, shuffle=False, target_column=3)


@pytest.mark.more
def test_within_an_input_fn_of_ones_own_there_are_tensors(make_estimator, caplog):
    def input_fn():
        x = {"x": np.array([1.0, 2.0, 3.0], np.float32)}
        y = np.zeros(3, np.float32)
        features, labels = inputs.numpy_input_fn(x, y, batch_size=2, shuffle=False)()
        return {"x": features["x"] + 1.0}, labels + 4.0

    estimator = make_estimator()
    estimator.train(input_fn)
    assert estimator.get_variable_value("global_step") == 2
    weight = estimator.get_variable_value("weight")
    for _ in range(3):
        rows = [row["y"] for row in estimator.predict(input_fn)]
        assert rows == pytest.approx([2 * weight, 3 * weight, 4 * weight])
    assert estimator.evaluate(input_fn) == estimator.evaluate(input_fn)
    assert "predict yields forever" not in caplog.text  # the batches come to an end


def test_predictions_that_never_end_are_said(make_estimator, caplog):
    next(make_estimator().predict(lambda: {"x": tf.constant([1.0])}))
    assert "predict yields forever" in caplog.text


def test_queue_runners_start_the_input_of_a_plain_session(session):
    input_fn = inputs.numpy_input_fn({"x": np.arange(3)}, np.arange(3) * 2, batch_size=2, shuffle=False)
    features, labels = input_fn()
    coordinator = tf.train.Coordinator()
    threads = tf1.train.start_queue_runners(session, coordinator)
    assert session.run([features["x"], labels])[1].tolist() == [0, 2]
    assert session.run([features["x"], labels])[0].tolist() == [2]
    coordinator.request_stop()
    coordinator.join(threads)
