"""evaluate and predict call input_fn and model_fn each time, and never answer from a stale graph."""

import collections

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import counting, zeros


@pytest.fixture
def calls():
    """The number of calls of model_fn, by mode."""
    return collections.Counter()


@pytest.fixture
def estimator(tmp_path, calls):
    """prediction = weight * x; the weight counts the training steps."""

    def model_fn(features, mode):
        calls[mode] += 1
        weight = zeros("weight")
        predictions = weight * features["x"]
        step = tf1.train.get_global_step()
        return est.EstimatorSpec(
            mode,
            predictions={"y": predictions},
            loss=tf.reduce_sum(predictions),
            train_op=tf.group(weight.assign_add(1.0), step.assign_add(1)),
            eval_metric_ops={"mean": tf1.metrics.mean(predictions)},
        )

    return est.Estimator(model_fn, str(tmp_path)).train(lambda: features([1.0]).repeat(), steps=1)


def features(values):
    return tf.data.Dataset.from_tensor_slices({"x": values}).batch(2)


def predicted(estimator, values):
    return [row["y"] for row in estimator.predict(lambda: features(values))]


def test_every_call_calls_model_fn(estimator, calls):
    results = [estimator.evaluate(lambda: features([1.0, 2.0, 6.0])) for _ in range(3)]
    assert [result["mean"] for result in results] == [3.0, 3.0, 3.0]
    assert [predicted(estimator, [value]) for value in (1.0, 1.0, 3.0)] == [[1.0], [1.0], [3.0]]
    assert calls == {"train": 1, "eval": 3, "infer": 3}


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
    values = [reader.get_tensor(name) for name in names]
    values = [
        value + value.dtype.type(4.0 * (name == "weight")) for name, value in zip(names, values, strict=True)
    ]
    tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)
    assert predicted(estimator, [1.0]) == [5.0]


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


def own_model_fn(build):
    """Returns a model_fn whose prediction and loss are the scalar that `build(features)` returns."""

    def model_fn(features, mode):
        with tf.control_dependencies([features["x"]]):  # else the end of the input ends nothing
            value = build(features)
        return counting(mode, value, predictions={"y": value[None]})

    return model_fn


def counted(_):
    """Counts its runs in a variable that checkpoints hold."""
    return zeros("runs", trainable=False).assign_add(1.0)


@pytest.mark.sampled(2)
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
    estimator = est.Estimator(own_model_fn(build), config=config).train(lambda: features([1.0]), steps=1)
    losses = [estimator.evaluate(lambda: features([1.0]))["loss"] for _ in range(3)]
    assert losses[1:] == losses[:1] * 2
    rows = [predicted(estimator, [1.0, 2.0]) for _ in range(3)]
    assert rows[1:] == rows[:1] * 2


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
