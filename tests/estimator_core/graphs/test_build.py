"""evaluate and predict call input_fn and model_fn each time, and never answer from a stale graph."""

import argparse
import collections
import os
import types

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import estimator_core as est
from tests.estimator_core.graphs import settings_module

tf1 = tf.compat.v1


@pytest.fixture
def calls():
    """The number of calls of model_fn, by mode."""
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


def test_every_call_calls_model_fn(estimator, calls):
    results = [estimator.evaluate(lambda: features([1.0, 2.0, 6.0])) for _ in range(3)]
    assert [result["mean"] for result in results] == [3.0, 3.0, 3.0]
    assert [predicted(estimator, [1.0]) for _ in range(2)] == [[1.0], [1.0]]
    assert calls == {"train": 1, "eval": 3, "infer": 2}


def test_the_newest_checkpoint_is_taken(estimator):
    assert predicted(estimator, [1.0, 2.0]) == [1.0, 2.0]
    newer = est.Estimator(estimator.model_fn, estimator.model_dir)
    newer.train(lambda: features([1.0]).repeat(), steps=1)
    assert predicted(estimator, [1.0, 2.0]) == [2.0, 4.0]


def test_a_checkpoint_written_anew_under_the_same_name_is_read_again(estimator):
    assert predicted(estimator, [1.0]) == [1.0]
    path = estimator.latest_checkpoint()
    reader = tf.train.load_checkpoint(path)
    names = sorted(reader.get_variable_to_shape_map())
    values = [reader.get_tensor(name) + (name == "weight") * np.float32(4.0) for name in names]
    values = [value.astype(reader.get_tensor(name).dtype) for name, value in zip(names, values, strict=True)]
    tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)
    assert predicted(estimator, [1.0]) == [5.0]


def test_other_input_gives_other_predictions(estimator):
    assert predicted(estimator, [1.0]) == [1.0]
    assert predicted(estimator, [3.0]) == [3.0]


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


def test_a_prediction_left_halfway_leaves_the_next_one_whole(estimator):
    rows = estimator.predict(lambda: features([1.0, 2.0, 3.0]))
    next(rows)
    rows.close()
    assert predicted(estimator, [1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]


def test_code_between_two_predictions_is_eager(estimator):
    for row in estimator.predict(lambda: features([1.0, 2.0])):
        assert tf.executing_eagerly()
        assert (tf.constant(1.0) + row["y"]).numpy() == row["y"] + 1.0


def test_predict_keys_may_change_from_call_to_call(estimator):
    assert predicted(estimator, [1.0]) == [1.0]
    with pytest.raises(ValueError, match="at least one output"):
        list(estimator.predict(lambda: features([1.0]), predict_keys="z"))
    assert predicted(estimator, [1.0]) == [1.0]


def test_hooks_get_a_graph_that_they_may_add_to(estimator):
    class AddsToTheGraph(est.SessionRunHook):
        def begin(self):
            self.two = tf.constant(2.0)

        def before_run(self, run_context):
            return est.SessionRunArgs(self.two)

    for _ in range(2):
        assert estimator.evaluate(lambda: features([1.0]), hooks=[AddsToTheGraph()])["mean"] == 1.0


@pytest.mark.more
def test_lookup_tables_are_filled_each_time(tmp_path):
    column = tf.feature_column.categorical_column_with_vocabulary_list("k", ["a", "b"])
    indicator = tf.feature_column.indicator_column(column)
    estimator = est.DNNClassifier([2], [indicator], model_dir=str(tmp_path))

    def input_fn():
        return tf.data.Dataset.from_tensors(({"k": [["a"], ["b"]]}, [[0], [1]]))

    estimator.train(input_fn)
    first, second = (estimator.evaluate(input_fn) for _ in range(2))
    assert first == second


def own_model_fn(build):
    """Returns a model_fn whose prediction and loss are the scalar that `build(features)` returns."""

    def model_fn(features, mode):
        step = tf1.train.get_global_step()
        with tf.control_dependencies([features["x"]]):  # else the end of the input ends nothing
            value = build(features)
        return est.EstimatorSpec(
            mode, predictions={"y": value[None]}, loss=value, train_op=step.assign_add(1)
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
        return est.EstimatorSpec(mode, predictions=predictions, loss=tf.constant(0.0), train_op=step)

    estimator = est.Estimator(model_fn, str(tmp_path), est.RunConfig(tf_random_seed=1))
    estimator.train(lambda: features([1.0]), steps=1)

    def noise():
        predictions = estimator.predict(lambda: features([1.0]), predict_keys=["noise"])
        return [row["noise"] for row in predictions]

    list(estimator.predict(lambda: features([1.0]), predict_keys=["plain"]))
    assert noise() == noise()


# Values that model_fn reads besides its arguments: each case is (read, change); it reads 1.0, and then 5.0.


class Settings:
    factor = 1.0


class WithSlots:
    __slots__ = ("factor",)

    def __init__(self):
        self.factor = 1.0


def class_attribute(monkeypatch):
    monkeypatch.setattr(Settings, "factor", 1.0)
    return lambda: Settings.factor, lambda: setattr(Settings, "factor", 5.0)


def attribute_of_another_module(monkeypatch):
    monkeypatch.setattr(settings_module, "FACTOR", 1.0)
    return lambda: settings_module.FACTOR, lambda: setattr(settings_module, "FACTOR", 5.0)


def environment_variable(monkeypatch):
    monkeypatch.setenv("FACTOR_OF_THIS_TEST", "1.0")
    return (
        lambda: float(os.environ["FACTOR_OF_THIS_TEST"]),
        lambda: monkeypatch.setenv("FACTOR_OF_THIS_TEST", "5.0"),
    )


def attribute_of(settings):
    return lambda: settings.factor, lambda: setattr(settings, "factor", 5.0)


def simple_namespace(monkeypatch):
    return attribute_of(types.SimpleNamespace(factor=1.0))


def parsed_arguments(monkeypatch):
    return attribute_of(argparse.Namespace(factor=1.0))


def object_with_slots(monkeypatch):
    return attribute_of(WithSlots())


def ordered_dict(monkeypatch):
    settings = collections.OrderedDict(factor=1.0)
    return lambda: settings["factor"], lambda: settings.update(factor=5.0)


def array_in_place(monkeypatch):
    array = np.array([1.0])
    return lambda: float(array[0]), lambda: array.fill(5.0)


def array_in_a_dict(monkeypatch):
    settings = {"factors": np.array([1.0, 2.0])}
    return lambda: float(settings["factors"][0]), lambda: settings["factors"].fill(5.0)


def absl_flag(monkeypatch):
    values = flags.FlagValues()
    flags.DEFINE_float("factor", 1.0, "of the model", flag_values=values)
    values.mark_as_parsed()
    return lambda: values.factor, lambda: setattr(values, "factor", 5.0)


def enclosing_variable(monkeypatch):
    factor = 1.0

    def change():
        nonlocal factor
        factor = 5.0

    return lambda: factor, change


@pytest.mark.parametrize("method", ["evaluate", "predict"])
@pytest.mark.parametrize(
    "case",
    [
        class_attribute,
        attribute_of_another_module,
        environment_variable,
        simple_namespace,
        parsed_arguments,
        ordered_dict,
        object_with_slots,
        array_in_place,
        array_in_a_dict,
        absl_flag,
        enclosing_variable,
    ],
)
def test_what_model_fn_reads_is_read_anew(case, method, monkeypatch, tmp_path):
    read, change = case(monkeypatch)

    def model_fn(features, mode):
        product = features["x"] * read()
        step = tf1.train.get_global_step().assign_add(1)
        metrics = {"mean": tf1.metrics.mean(product)}
        loss = tf.constant(0.0)
        return est.EstimatorSpec(mode, {"y": product}, loss, step, eval_metric_ops=metrics)

    estimator = est.Estimator(model_fn, str(tmp_path)).train(lambda: features([1.0]), steps=1)

    def answer():
        if method == "evaluate":
            return estimator.evaluate(lambda: features([2.0]))["mean"]
        return predicted(estimator, [2.0])[0]

    assert answer() == 2.0
    assert answer() == 2.0
    change()
    assert answer() == 10.0


def test_a_predictor_keeps_its_graph(estimator, calls):
    """A predictor is the one object that is asked for by name to keep the graph of model_fn."""
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})
    with estimator.predictor(receiver_fn) as predict:
        assert [predict({"x": [3.0]})["y"].tolist() for _ in range(3)] == [[3.0]] * 3
    assert calls["infer"] == 1


def test_a_program_is_built_and_not_run(estimator, calls):
    program = estimator.build_program("train", lambda: features([1.0]))
    assert calls["train"] == 2
    assert program.spec.mode == "train"
    with program.scope() as graph:
        assert graph is program.graph is tf1.get_default_graph()
        assert tf1.global_variables("weight")[0].graph is graph
    assert estimator.get_variable_value("global_step") == 1
