"""Predictions come when their batch is there, and nothing is asked of the input before it is needed."""

import itertools
import queue
import threading

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est

SECS = 30  # after which a prediction that is held back counts as lost


class Doing(est.SessionRunHook):
    """A hook that is called around each batch."""

    def after_run(self, run_context, run_values):
        pass


@pytest.fixture(params=["no_hooks", "hooks"])
def hooks(request):
    return [] if request.param == "no_hooks" else [Doing()]


@pytest.fixture
def model(tmp_path):
    """Doubles x."""

    def model_fn(features, labels, mode):
        y = features["x"] * tf1.get_variable("weight", initializer=2.0)
        if mode == est.ModeKeys.PREDICT:
            return est.EstimatorSpec(mode, {"y": y, "x": features["x"]})
        loss = tf.reduce_sum(y)
        with tf.control_dependencies([loss]):
            train_op = tf1.train.get_global_step().assign_add(1)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))

    return est.Estimator(model_fn, str(tmp_path)).train(input_fn)


def from_generator(generator, batch_size=1):
    def input_fn():
        dataset = tf.data.Dataset.from_generator(generator, output_types=tf.float32, output_shapes=[])
        return dataset.batch(batch_size).map(lambda x: {"x": x})

    return input_fn


def test_a_row_comes_before_the_next_one_is_there(model, hooks):
    """A service that waits for the answer to one request before it sends another."""
    requests = queue.Queue()

    def generator():
        while (value := requests.get(timeout=SECS)) is not None:
            yield value

    answers = model.predict(from_generator(generator), hooks=hooks)
    for value in (3.0, 5.0, 8.0):
        requests.put(value)
        assert next(answers) == {"y": 2 * value, "x": value}
    requests.put(None)
    with pytest.raises(StopIteration):
        next(answers)


def test_the_input_is_asked_for_no_more_than_what_is_taken(model, hooks):
    """An endless input, of which the first rows are taken."""
    asked = []

    def generator():
        for value in itertools.count():
            asked.append(value)
            yield value

    answers = model.predict(from_generator(generator), hooks=hooks)
    assert asked == []
    assert [row["y"] for row in itertools.islice(answers, 5)] == [0, 2, 4, 6, 8]
    assert len(asked) <= 10  # tf.data itself reads a few ahead
    answers.close()


def test_what_the_model_does_comes_between_what_the_caller_does(tmp_path):
    """A model_fn that calls Python."""
    order = []

    def noting(x):
        order.append(("model", float(x[0])))
        return x

    def model_fn(features, labels, mode):
        return est.EstimatorSpec(mode, {"y": tf1.py_func(noting, [features["x"]], tf.float32)})

    def input_fn():
        return tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0]}).batch(1)

    for row in est.Estimator(model_fn, str(tmp_path)).predict(input_fn):
        order.append(("caller", float(row["y"])))
    assert order == [(who, value) for value in (1.0, 2.0, 3.0) for who in ("model", "caller")]


def test_rows_before_an_error_come_before_it(model, hooks):
    def input_fn():
        x = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, np.nan, 5.0])
        return x.map(lambda x: {"x": tf.debugging.check_numerics(x, "bad row")}).batch(1)

    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad row"):
        found.extend(float(row["y"]) for row in model.predict(input_fn, hooks=hooks))
    assert found == [2, 4, 6]


def test_an_error_names_the_operation_and_where_it_was_made(tmp_path, hooks):
    def model_fn(features, labels, mode):
        return est.EstimatorSpec(mode, tf.gather(features["x"], [5], name="the_sixth"))

    def input_fn():
        return tf.data.Dataset.from_tensors({"x": [1.0, 2.0]})

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(est.Estimator(model_fn, str(tmp_path)).predict(input_fn, hooks=hooks))
    assert caught.value.op.name == "the_sixth"
    assert "model_fn" in str(caught.value)


def test_a_thread_that_fills_a_queue_and_fails_is_reported(model, hooks):
    def input_fn():
        x = tf1.train.input_producer([1.0, 2.0, 0.0], num_epochs=None, shuffle=False).dequeue()
        return {"x": tf1.train.batch([tf1.debugging.check_numerics(1.0 / x, "no number")], 1)}

    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        for _ in model.predict(input_fn, hooks=hooks):
            pass


def test_several_generators_go_on_side_by_side(model):
    def input_fn(start):
        return lambda: tf.data.Dataset.from_tensor_slices({"x": [start, start + 1.0]}).batch(1)

    pairs = zip(model.predict(input_fn(1.0)), model.predict(input_fn(10.0)), strict=True)
    assert [(a["y"], b["y"]) for a, b in pairs] == [(2, 20), (4, 22)]


def test_threads_may_predict_at_the_same_time(model):
    def predict(value, found):
        dataset = lambda: tf.data.Dataset.from_tensors({"x": [value]})  # noqa: E731
        found[value] = [float(row["y"]) for _ in range(3) for row in model.predict(dataset)]

    found = {}
    threads = [threading.Thread(target=predict, args=(n, found)) for n in (1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECS)
    assert found == {n: [2 * n] * 3 for n in (1.0, 2.0, 3.0)}


def test_rows_are_of_the_types_that_indexing_gives(tmp_path):
    """Programs call `row["name"].decode()`, `row["ids"].tolist()`, `float(row["p"])`, and change arrays."""

    def model_fn(features, labels, mode):
        x = features["x"]
        predictions = {
            "p": x,
            "name": tf.strings.as_string(x),
            "pair": tf.stack([x, x + 1], axis=1),
            "flag": x > 1,
            "words": tf.stack([tf.strings.as_string(x), tf.strings.as_string(x)], axis=1),
        }
        return est.EstimatorSpec(mode, predictions)

    def input_fn():
        return tf.data.Dataset.from_tensors({"x": [1.0, 2.0]})

    estimator = est.Estimator(model_fn, str(tmp_path))
    (batch,) = estimator.predict(input_fn, yield_single_examples=False)
    rows = list(estimator.predict(input_fn))
    for index, row in enumerate(rows):
        assert list(row) == list(batch)
        for name, value in row.items():
            assert type(value) is type(batch[name][index])
            np.testing.assert_array_equal(value, batch[name][index])
    rows[0]["pair"][0] = 9
    assert rows[1]["pair"].tolist() == [2, 3]
    rows[0]["new"] = 1
    assert "new" not in rows[1]
