"""A premade model is kept from call to call where nothing can have changed, and only there."""

import gc
import itertools
import os
import weakref
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.graphs import build, kept_model
from tests.estimator_core.programs import Calls, batch_of, counting

fc = tf.feature_column


def rows(*values):
    """An input_fn of one batch."""
    x = np.array(values, np.float32)
    words = np.array(["ab"[int(value) % 2] for value in values])
    return lambda: tf.data.Dataset.from_tensors({"x": x, "word": words})


def columns(words=("a", "b")):
    word = fc.categorical_column_with_vocabulary_list("word", words)
    return [fc.numeric_column("x"), fc.embedding_column(word, 2)]


training = batch_of({"x": [1.0, 2.0], "word": ["a", "b"]}, [0, 1], repeat=None)


@pytest.fixture
def model(tmp_path):
    config = est.RunConfig(str(tmp_path), tf_random_seed=1)
    return est.DNNClassifier([3], columns(), config=config).train(training, steps=2)


@pytest.fixture
def built(monkeypatch):
    """The number of times that a model was built for prediction."""
    calls = []
    original = build.Model.step_fn
    monkeypatch.setattr(build.Model, "step_fn", lambda self, mode: calls.append(mode) or original(self, mode))
    return calls


def logits(model, input_fn, **options):
    return [row["logits"].tobytes() for row in model.predict(input_fn, **options)]


def fresh(model):
    """The same model in another Estimator, for which nothing is kept."""
    return est.DNNClassifier([3], columns(), config=model.config)


def many(count):
    """An input_fn of so many batches of one example, with different numbers."""
    features = {"x": np.arange(count, dtype=np.float32), "word": ["a", "b"] * (count // 2)}
    return lambda: tf.data.Dataset.from_tensor_slices(features).batch(1)


def test_the_third_call_builds_nothing_and_answers_the_same(model, built):
    numbers = [logits(model, rows(value)) for value in (1, 2, 3, 1, 2)]
    assert len(built) == 2  # one with its input, and one to keep
    assert numbers[:2] == numbers[3:]
    assert numbers[0] != numbers[1]
    assert numbers[:3] == [logits(fresh(model), rows(value)) for value in (1, 2, 3)]


@pytest.mark.more
def test_input_fn_is_called_each_time(model):
    calls = itertools.count(1)
    answers = [logits(model, lambda: rows(next(calls))()) for _ in range(5)]
    assert next(calls) == 6
    assert answers == [logits(fresh(model), rows(value)) for value in range(1, 6)]


@pytest.mark.more
def test_a_later_checkpoint_is_followed(model):
    before = [logits(model, rows(1)) for _ in range(3)]
    model.train(training, steps=5)
    after = [logits(model, rows(1)) for _ in range(3)]
    assert len(set(map(tuple, before))) == len(set(map(tuple, after))) == 1
    assert before[0] != after[0]
    assert after[0] == logits(fresh(model), rows(1))


def test_a_checkpoint_that_is_written_anew_under_its_name_is_followed(model, tmp_path):
    path = model.latest_checkpoint()
    before = [logits(model, rows(1), checkpoint_path=path) for _ in range(3)]
    with tf.Graph().as_default(), tf1.Session() as session:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            value = reader.get_tensor(name)
            tf1.get_variable(name, initializer=value if name == "global_step" else value + 1)
        session.run(tf1.global_variables_initializer())
        index = f"{path}.index"
        second = os.stat(index).st_mtime_ns // 10**9 * 10**9
        tf1.train.Saver().save(session, path, write_meta_graph=False)
    os.utime(index, ns=(second, second + 1))  # TensorFlow sees the second alone
    assert logits(model, rows(1), checkpoint_path=path) != before[0]


@pytest.mark.more
def test_a_generator_goes_on_with_the_weights_that_it_began_with(model):
    def two_batches():
        return rows(1)().concatenate(rows(2)())

    expected = logits(model, two_batches)
    for _ in range(2):
        assert logits(model, two_batches) == expected
    generator = model.predict(two_batches)
    first = next(generator)["logits"].tobytes()
    model.train(training, steps=5)
    for _ in range(3):
        logits(model, two_batches)
    assert [first, next(generator)["logits"].tobytes()] == expected


@pytest.mark.more
def test_a_long_call_gets_a_model_with_its_input(model, built):
    expected = logits(fresh(model), many(500))
    assert len(set(expected)) > 100
    for _ in range(3):
        logits(model, lambda: many(500)().take(1))
    del built[:]
    generator = model.predict(many(500), predict_keys=["classes", "logits"])
    found = [next(generator) for _ in range(150)]
    assert not built
    model.train(training, steps=5)
    del built[:]
    found += generator
    assert len(built) == 1
    assert [row["logits"].tobytes() for row in found] == expected
    assert [list(row) for row in found] == [["logits", "classes"]] * 500
    assert logits(model, many(500)) == logits(fresh(model), many(500)) != expected


@pytest.mark.more
def test_a_long_call_goes_on_with_the_columns_that_it_began_with(tmp_path, built):
    given = [fc.numeric_column("x")]
    model = est.DNNClassifier([3], given, config=est.RunConfig(str(tmp_path), tf_random_seed=1))
    model.train(training, steps=2)
    expected = logits(model, many(250))
    for _ in range(3):
        logits(model, lambda: many(250)().take(1))
    generator = model.predict(many(250))
    first = [next(generator)["logits"].tobytes()]
    del built[:]
    given[0] = fc.numeric_column("x", normalizer_fn=lambda x: 2 * x)
    assert first + [row["logits"].tobytes() for row in generator] == expected
    assert not built


def test_other_features_get_another_model(model, built):
    for _ in range(3):
        logits(model, rows(1))
    assert len(built) == 2
    assert len(logits(model, rows(1, 2, 3))) == 3
    assert logits(model, batch_of({"x": [[1.0]], "word": [["b"]]})) == logits(fresh(model), rows(1))
    with pytest.raises(ValueError, match="word"):
        list(model.predict(batch_of({"x": [1.0]})))


@pytest.mark.more
def test_columns_that_are_changed_in_place_are_seen(tmp_path):
    given = columns()
    config = est.RunConfig(str(tmp_path), tf_random_seed=1)
    model = est.DNNClassifier([3], given, config=config).train(training, steps=2)
    for _ in range(3):
        before = logits(model, rows(1))
    given[1] = columns(("b", "a"))[1]
    after = [logits(model, rows(1)) for _ in range(3)]
    assert after == [logits(est.DNNClassifier([3], given, config=config), rows(1))] * 3
    assert after[0] != before


def build_counts(model, built, calls=5, input_fn=None):
    del built[:]
    for _ in range(calls):
        list(model.predict(input_fn or rows(1)))
    return len(built)


def model_fn(features, labels, mode):
    x = tf.reshape(tf.cast(features["x"], tf.float32), [-1, 1])
    return counting(mode, tf.reduce_sum(x), predictions={"logits": x})


def normalized(factor):
    return fc.numeric_column("x", normalizer_fn=lambda x: x * factor[0])


@pytest.mark.more
@pytest.mark.parametrize("kind", ["model_fn", "normalizer", "activation", "head", "add_metrics"])
def test_code_of_the_user_is_called_each_time(kind, tmp_path, built):
    factor, x, config = [1.0], [fc.numeric_column("x")], est.RunConfig(str(tmp_path))
    scaled = lambda value: value * factor[0]  # noqa: E731
    head = type("Head", (est.BinaryClassHead,), {})()
    model = {
        "model_fn": lambda: est.Estimator(model_fn, config=config),
        "normalizer": lambda: est.DNNClassifier([64], [normalized(factor)], config=config),
        "activation": lambda: est.DNNClassifier([3], x, activation_fn=scaled, config=config),
        "head": lambda: est.DNNEstimator(head, [3], x, config=config),
        "add_metrics": lambda: est.add_metrics(
            est.DNNClassifier([3], x, config=config), lambda predictions: {}
        ),
    }[kind]()
    model.train(training, steps=2)
    assert build_counts(model, built) == 5
    before = logits(model, rows(3))
    factor[0] = 2.0
    assert (logits(model, rows(3)) != before) == (kind in ("normalizer", "activation"))


@pytest.mark.more
def test_a_vocabulary_file_is_read_each_time(tmp_path, built):
    path = tmp_path / "words"
    path.write_text("a\nb\n")
    word = fc.categorical_column_with_vocabulary_file("word", str(path), 2)
    config = est.RunConfig(str(tmp_path / "model"))
    model = est.DNNClassifier([3], [fc.embedding_column(word, 2)], config=config)
    model.train(training, steps=2)
    a, b = ([logits(model, rows(value)) for _ in range(4)][-1] for value in (0, 1))
    path.write_text("b\na\n")
    assert (logits(model, rows(0)), logits(model, rows(1))) == (b, a)


def test_hooks_see_a_session_of_their_own(model, built):
    build_counts(model, built)
    hook = Calls()
    list(model.predict(rows(1), hooks=[hook]))
    assert (hook.calls, len(built)) == (1, 3)


@pytest.mark.more
def test_long_inputs_have_a_graph_with_the_input_in_it(model, built):
    long = lambda: rows(1)().repeat(20)  # noqa: E731
    assert build_counts(model, built, input_fn=long) == 5
    assert build_counts(model, built, 4) == 2  # one with its input, and one to keep


def test_an_input_with_a_table_takes_the_whole_way(model, built):
    def input_fn():
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["p", "q"], ["a", "b"]), "a")
        batch = tf1.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(["q"])).get_next()
        return {"x": tf.constant([1.0]), "word": table.lookup(batch)}

    assert build_counts(model, built, 3, input_fn) == 3


def test_a_subclass_that_builds_its_own_programs_is_asked_for_them(model):
    class Own(est.DNNClassifier):
        programs = 0

        def build_program(self, *args, **kwargs):
            self.programs += 1
            return super().build_program(*args, **kwargs)

    own = Own([3], columns(), config=model.config)
    for _ in range(4):
        logits(own, rows(1))
    assert own.programs == 4


@pytest.mark.more
def test_keys_and_whole_batches(model):
    for _ in range(4):
        (row,) = model.predict(rows(1), predict_keys=["classes", "logits"])
        assert sorted(row) == ["classes", "logits"]
        (batch,) = model.predict(rows(1, 2), yield_single_examples=False)
        assert batch["probabilities"].shape == (2, 2)
    with pytest.raises(ValueError, match="predict_keys"):
        list(model.predict(rows(1, 2), predict_keys=["none"]))


@pytest.mark.more
def test_what_is_kept_goes_with_the_estimator(model):
    other = fresh(model)
    for one in (model, other):
        for _ in range(3):
            logits(one, rows(1))
    kept = weakref.ref(kept_model._calls_of[other].kept.session)
    del other, one
    gc.collect()
    assert kept() is None


def test_another_process_has_its_own(model, built, monkeypatch):
    build_counts(model, built)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert build_counts(model, built, 1) == 1


def test_threads_may_predict_at_the_same_time(model):
    expected = {value: logits(model, rows(value)) for value in (1, 2, 3)}
    with futures.ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda value: [logits(model, rows(value)) for _ in range(5)], expected, timeout=60)
        assert list(found) == [[number] * 5 for number in expected.values()]


def test_the_default_graph_stays_the_callers(model, graph):
    for _ in range(4):
        for _ in model.predict(rows(1)):
            assert tf1.get_default_graph() is graph
    assert graph.get_operations() == []
