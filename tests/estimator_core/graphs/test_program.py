"""Evaluation and prediction build a graph once, and never answer from a stale one."""

import collections

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.graphs.program import forgets_its_runs

tf1 = tf.compat.v1


@pytest.fixture
def calls():
    """How often model_fn was called, by mode."""
    return collections.Counter()


@pytest.fixture
def estimator(tmp_path, calls):
    """prediction = weight * x; the weight counts the training steps."""

    def model_fn(features, mode):
        calls[mode] += 1
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        predictions = weight * features["x"]
        step = tf1.train.get_global_step()
        return est.EstimatorSpec(
            mode,
            predictions={"y": predictions},
            loss=tf.reduce_sum(predictions),
            train_op=tf.group(weight.assign_add(1.0), step.assign_add(1)),
            eval_metric_ops={"mean": tf1.metrics.mean(predictions)},
        )

    estimator = est.Estimator(model_fn, str(tmp_path))
    estimator.train(lambda: features([1.0]).repeat(), steps=1)
    return estimator


def features(values):
    return tf.data.Dataset.from_tensor_slices({"x": values}).batch(2)


def predicted(estimator, values):
    return [row["y"] for row in estimator.predict(lambda: features(values))]


def test_the_same_input_is_evaluated_with_one_graph(estimator, calls):
    results = [estimator.evaluate(lambda: features([1.0, 2.0, 6.0])) for _ in range(3)]
    assert [result["mean"] for result in results] == [3.0, 3.0, 3.0]
    assert calls["eval"] == 1


def test_a_new_checkpoint_is_reloaded_into_the_kept_graph(estimator, calls):
    assert predicted(estimator, [1.0, 2.0]) == [1.0, 2.0]
    newer = est.Estimator(estimator.model_fn, estimator.model_dir)
    newer.train(lambda: features([1.0]).repeat(), steps=1)
    assert predicted(estimator, [1.0, 2.0]) == [2.0, 4.0]
    assert calls["infer"] == 1


def test_a_checkpoint_written_anew_under_the_same_name_is_reloaded(estimator):
    assert predicted(estimator, [1.0]) == [1.0]
    path = estimator.latest_checkpoint()
    reader = tf.train.load_checkpoint(path)
    names = sorted(reader.get_variable_to_shape_map())
    values = [reader.get_tensor(name) + (name == "weight") * np.float32(4.0) for name in names]
    values = [
        value.astype(reader.get_tensor(name).dtype)
        for name, value in zip(names, values, strict=True)
    ]
    tf.raw_ops.SaveV2(
        prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values
    )
    assert predicted(estimator, [1.0]) == [5.0]


def test_other_input_is_never_answered_from_the_kept_graph(estimator, calls):
    assert predicted(estimator, [1.0]) == [1.0]
    assert predicted(estimator, [3.0]) == [3.0]
    assert calls["infer"] == 2


def test_input_that_python_makes_is_asked_for_anew(estimator):
    numbers = iter([1.0, 5.0])

    def input_fn():
        return tf.data.Dataset.from_generator(lambda: [next(numbers)], tf.float32).map(
            lambda x: {"x": x[None]}
        )

    seen = [row["y"] for _ in range(2) for row in estimator.predict(input_fn)]
    assert seen == [1.0, 5.0]


def test_two_predictions_at_once_do_not_share_a_session(estimator):
    def rows():
        return estimator.predict(lambda: features([1.0, 2.0, 3.0]))

    pairs = [(left["y"], right["y"]) for left, right in zip(rows(), rows(), strict=True)]
    assert pairs == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


def test_a_prediction_left_halfway_leaves_the_next_one_whole(estimator, calls):
    rows = estimator.predict(lambda: features([1.0, 2.0, 3.0]))
    next(rows)
    rows.close()
    assert predicted(estimator, [1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
    assert calls["infer"] == 1


def test_code_between_two_predictions_is_eager(estimator):
    for row in estimator.predict(lambda: features([1.0, 2.0])):
        assert tf.executing_eagerly()
        assert (tf.constant(1.0) + row["y"]).numpy() == row["y"] + 1.0


def test_predict_keys_may_change_from_call_to_call(estimator):
    assert predicted(estimator, [1.0]) == [1.0]
    with pytest.raises(ValueError, match="at least one output"):
        list(estimator.predict(lambda: features([1.0]), predict_keys="z"))
    assert predicted(estimator, [1.0]) == [1.0]


def test_hooks_always_get_a_graph_that_they_may_add_to(estimator, calls):
    class AddsToTheGraph(est.SessionRunHook):
        def begin(self):
            self.two = tf.constant(2.0)

        def before_run(self, run_context):
            return est.SessionRunArgs(self.two)

    for _ in range(2):
        estimator.evaluate(lambda: features([1.0]), hooks=[AddsToTheGraph()])
    assert calls["eval"] == 2


def test_lookup_tables_of_a_kept_graph_are_filled_again(tmp_path):
    column = tf.feature_column.categorical_column_with_vocabulary_list("k", ["a", "b"])
    indicator = tf.feature_column.indicator_column(column)
    estimator = est.DNNClassifier([2], [indicator], model_dir=str(tmp_path))

    def input_fn():
        return tf.data.Dataset.from_tensors(({"k": [["a"], ["b"]]}, [[0], [1]]))

    estimator.train(input_fn)
    first, second = (estimator.evaluate(input_fn) for _ in range(2))
    assert first == second


def own_model_fn(build):
    """Returns a model_fn whose prediction and loss are what `build(features)` returns, a scalar."""

    def model_fn(features, mode):
        step = tf1.train.get_global_step()
        with tf.control_dependencies([features["x"]]):  # else the end of the input ends nothing
            value = build(features)
        return est.EstimatorSpec(
            mode,
            predictions={"y": value[None]},
            loss=value,
            train_op=step.assign_add(1),
        )

    return model_fn


def counted(_):
    """Counts its runs in a variable that checkpoints hold."""
    runs = tf1.get_variable("runs", [], initializer=tf1.zeros_initializer(), trainable=False)
    return runs.assign_add(1.0)


@pytest.mark.parametrize(
    ("build", "seed"),
    [
        (lambda features: tf.random.uniform([]), 3),
        (lambda features: tf.random.uniform([], seed=3), None),
        (counted, None),
    ],
    ids=["seed of the graph", "seed of an operation", "variable"],
)
def test_each_call_computes_what_a_new_session_would(tmp_path, build, seed):
    config = est.RunConfig(model_dir=str(tmp_path), tf_random_seed=seed)
    estimator = est.Estimator(own_model_fn(build), config=config)
    estimator.train(lambda: features([1.0]), steps=1)
    losses = [estimator.evaluate(lambda: features([1.0]))["loss"] for _ in range(3)]
    assert losses[1:] == losses[:1] * 2
    rows = [predicted(estimator, [1.0, 2.0]) for _ in range(3)]
    assert rows[1:] == rows[:1] * 2


def test_random_numbers_in_a_function_are_found():
    with tf.Graph().as_default() as graph:
        drawn = tf.map_fn(lambda x: x * tf.random.uniform([], seed=3), tf.ones([2]))
        assert not forgets_its_runs(graph, drawn)
    with tf.Graph().as_default() as graph:
        doubled = tf.map_fn(lambda x: x * 2.0, tf.ones([2]))
        assert forgets_its_runs(graph, doubled)


def test_input_that_is_shuffled_by_a_seed_comes_in_the_same_order(estimator):
    def shuffled():
        return features(np.arange(9.0, dtype=np.float32)).unbatch().shuffle(9, seed=3).batch(2)

    orders = [[row["y"] for row in estimator.predict(shuffled)] for _ in range(3)]
    assert orders[1:] == orders[:1] * 2


@pytest.mark.parametrize("make", ["make_one_shot_iterator", "make_initializable_iterator"])
def test_iterators_that_the_user_makes_start_anew(estimator, make):
    def input_fn():
        iterator = getattr(tf1.data, make)(features([1.0, 2.0, 3.0]))
        if make == "make_initializable_iterator":
            tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    for _ in range(3):
        assert [row["y"] for row in estimator.predict(input_fn)] == [1.0, 2.0, 3.0]
        assert estimator.evaluate(input_fn)["mean"] == 2.0


def test_a_vocabulary_file_that_has_changed_is_read_again(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\nb\n")
    column = tf.feature_column.categorical_column_with_vocabulary_file("k", str(vocabulary), 2)
    estimator = est.LinearClassifier([column], model_dir=str(tmp_path / "model"))

    def input_fn():
        return tf.data.Dataset.from_tensors(({"k": [["a"], ["b"]]}, [[0], [1]]))

    estimator.train(input_fn)
    before = [row["logits"][0] for row in estimator.predict(input_fn)]
    vocabulary.write_text("b\na\n")
    after = [row["logits"][0] for row in estimator.predict(input_fn)]
    assert after == before[::-1]
    assert before[0] != before[1]


def test_the_session_of_a_canned_model_is_kept(tmp_path):
    estimator = est.DNNClassifier(
        [2], [tf.feature_column.numeric_column("x")], model_dir=str(tmp_path)
    )

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[0], [1]]))

    estimator.train(input_fn)
    estimator.evaluate(input_fn)
    list(estimator.predict(input_fn))
    kept = estimator._graphs._kept._programs
    assert [kept[mode].keeps_session for mode in ("eval", "infer")] == [True, True]


def test_functions_in_another_order_are_another_input(estimator):
    def mean(*functions):
        def input_fn():
            dataset = tf.data.Dataset.from_tensors({"x": [2.0]})
            for function in functions:
                dataset = dataset.map(lambda row, f=function: {"x": f(row["x"])})
            return dataset

        return estimator.evaluate(input_fn)["mean"]

    def increased(x):
        return x + 1.0

    def doubled(x):
        return x * 2.0

    assert [mean(increased, doubled), mean(doubled, increased)] == [6.0, 5.0]
    assert mean(increased, doubled) == 6.0


def test_other_names_for_the_same_tensors_are_another_input(estimator):
    def input_fn(name):
        return lambda: tf.data.Dataset.from_tensors([2.0]).map(lambda x: {name: x})

    def pair(first, second):
        def input_fn():
            one, two = tf1.data.make_one_shot_iterator(
                tf.data.Dataset.from_tensors(([2.0], [3.0]))
            ).get_next()
            return {first: one, second: two}

        return input_fn

    assert estimator.evaluate(input_fn("x"))["mean"] == 2.0
    with pytest.raises(KeyError, match="x"):
        estimator.evaluate(input_fn("y"))
    assert estimator.evaluate(pair("x", "y"), steps=1)["mean"] == 2.0
    assert estimator.evaluate(pair("y", "x"), steps=1)["mean"] == 3.0


def test_random_predictions_start_anew_whatever_was_predicted_before(tmp_path):
    def model_fn(features, mode):
        step = tf1.train.get_global_step().assign_add(1)
        noise = tf.random.normal(tf.shape(features["x"]), seed=3)
        predictions = {"plain": features["x"], "noise": noise}
        return est.EstimatorSpec(mode, predictions=predictions, loss=0.0, train_op=step)

    estimator = est.Estimator(model_fn, str(tmp_path), est.RunConfig(tf_random_seed=1))
    estimator.train(lambda: features([1.0]), steps=1)

    def noise():
        predictions = estimator.predict(lambda: features([1.0]), predict_keys=["noise"])
        return [row["noise"] for row in predictions]

    list(estimator.predict(lambda: features([1.0]), predict_keys=["plain"]))
    assert noise() == noise()


def test_a_variable_that_model_fn_reads_is_read_anew(tmp_path):
    factor = 1.0

    def model_fn(features, mode):
        mean = tf1.metrics.mean(features["x"] * factor)
        step = tf1.train.get_global_step().assign_add(1)
        return est.EstimatorSpec(mode, loss=0.0, train_op=step, eval_metric_ops={"mean": mean})

    estimator = est.Estimator(model_fn, str(tmp_path)).train(lambda: features([1.0]), steps=1)
    assert estimator.evaluate(lambda: features([2.0]))["mean"] == 2.0
    factor = 5.0
    assert estimator.evaluate(lambda: features([2.0]))["mean"] == 10.0
