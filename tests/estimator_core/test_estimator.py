import collections
import copy
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.summaries import read_evaluations
from tests.estimator_core.programs import batch_of, counting


def test_train_takes_exactly_the_steps_asked_for(make_estimator, input_fn):
    estimator = make_estimator()
    assert estimator.train(input_fn, steps=3) is estimator
    # w = 2 - 2 / 2^3
    assert estimator.get_variable_value("weight") == pytest.approx(1.75)
    assert estimator.get_variable_value("global_step") == 3
    assert estimator.latest_checkpoint().endswith("model.ckpt-3")
    assert sorted(estimator.get_variable_names()) == ["global_step", "weight"]


def test_a_new_estimator_continues_from_the_model_dir_to_max_steps_and_not_beyond(
    make_estimator, input_fn, eval_input_fn
):
    make_estimator().train(input_fn, steps=2)
    estimator = make_estimator()
    for _ in range(2):
        estimator.train(input_fn, max_steps=5)
        assert estimator.get_variable_value("weight") == pytest.approx(2 - 2 / 2**5)
        assert estimator.get_variable_value("global_step") == 5
    estimator.train(eval_input_fn, steps=100)  # ends with the input
    assert estimator.get_variable_value("global_step") == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps > 0"),
        ({"max_steps": -1}, "max_steps > 0"),
        ({"steps": 1, "max_steps": 1}, "both steps and max_steps"),
    ],
)
def test_train_refuses_bad_steps(make_estimator, input_fn, arguments, message):
    with pytest.raises(ValueError, match=message):
        make_estimator().train(input_fn, **arguments)


@pytest.mark.more
def test_steps_may_be_whole_floats_and_a_fraction_of_a_step_is_one_more(make_estimator, input_fn):
    estimator = make_estimator()
    for steps, expected in (({"steps": 2.5}, 3), ({"max_steps": 3.5}, 4), ({"steps": np.int64(1)}, 5),
                            ({"steps": 2.0}, 7), ({"max_steps": np.float32(8)}, 8)):  # fmt: skip
        estimator.train(input_fn, **steps)
        assert estimator.get_variable_value("global_step:0") == expected
    assert estimator.evaluate(input_fn, steps=25.0)["global_step"] == 8
    with pytest.raises(TypeError, match="steps must be a number"):
        estimator.train(input_fn, steps="2")


def test_evaluate_weighs_examples_in_metrics_and_batches_in_the_loss(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator()
    untrained = estimator.evaluate(eval_input_fn)  # initial variables
    assert untrained == {"loss": 0.0, "mae": 0.0, "global_step": 0}
    estimator.train(input_fn, steps=1)  # w = 1, predictions are 1, 2 and 3, labels 0
    assert estimator.evaluate(eval_input_fn) == {
        "loss": pytest.approx(((1 + 4) / 2 + 9) / 2),
        "mae": pytest.approx((1 + 2 + 3) / 3),
        "global_step": 1,
    }


@pytest.mark.parametrize("path_type", [str, Path])
def test_evaluate_an_older_checkpoint(make_estimator, input_fn, eval_input_fn, path_type):
    estimator = make_estimator(save_checkpoints_steps=1).train(input_fn, steps=2)
    path = path_type(os.path.join(estimator.model_dir, "model.ckpt-1"))
    assert estimator.evaluate(eval_input_fn, checkpoint_path=path)["mae"] == pytest.approx(2)
    assert next(estimator.predict(eval_input_fn, checkpoint_path=path))


@pytest.mark.parametrize("name", ["loss", "global_step"])
def test_a_metric_with_a_name_of_ours_is_refused(tmp_path, eval_input_fn, name):
    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(features["x"] + labels)
        return est.EstimatorSpec(mode, loss=loss, eval_metric_ops={name: tf1.metrics.mean(loss)})

    with pytest.raises(ValueError, match=f"'{name}' is not allowed"):
        est.Estimator(model_fn, tmp_path).evaluate(eval_input_fn)


def test_predict_selects_keys(tmp_path, eval_input_fn):
    def model_fn(features, mode):
        return est.EstimatorSpec(mode, {"a": features["x"], "b": -features["x"]})

    estimator = est.Estimator(model_fn, tmp_path)
    assert next(estimator.predict(eval_input_fn, predict_keys="b")) == {"b": -1.0}
    with pytest.raises(ValueError, match=r"\['a', 'b'\]"):
        next(estimator.predict(eval_input_fn, predict_keys=["c"]))


def test_input_fn_receives_the_arguments_it_names(make_estimator, input_fn):
    received = {}

    def with_arguments(mode, params, config):
        received.update(mode=mode, params=params, model_dir=config.model_dir)
        return input_fn()

    estimator = make_estimator().train(with_arguments, steps=1)
    assert received == {"mode": "train", "params": {"learning_rate": 0.25}, "model_dir": estimator.model_dir}


def test_input_fn_may_return_tensors_or_a_pair_with_names(make_estimator):
    estimator = make_estimator()
    estimator.train(lambda: ({"x": tf.ones([1])}, tf.constant([2.0])), steps=1)
    assert estimator.get_variable_value("weight") == pytest.approx(1.0)
    pair = collections.namedtuple("pair", ["inputs", "targets"])
    input_fn = batch_of(pair({"x": [1.0, 1.0]}, [2.0, 2.0]))
    estimator.train(input_fn, steps=1)
    assert [row["y"] for row in estimator.predict(input_fn)] == [1.5, 1.5]


def test_warm_start_applies_to_a_new_model_dir_only(tmp_path, make_estimator, input_fn):
    source = make_estimator()
    source.train(input_fn, steps=1)  # w = 1

    def target():
        settings = {"params": {"learning_rate": 0.25}, "warm_start_from": source.model_dir}
        return est.Estimator(source._model_fn, tmp_path / "target", **settings)

    target().train(input_fn, steps=1)  # half the way from 1 to 2
    assert target().get_variable_value("weight") == pytest.approx(1.5)
    assert target().get_variable_value("global_step") == 1
    target().train(input_fn, steps=1)  # continues; a second warm start would give 1.5 again
    assert target().get_variable_value("weight") == pytest.approx(1.75)


def test_model_dir_given_twice_must_agree(tmp_path):
    config = est.RunConfig(model_dir=str(tmp_path / "a"))
    with pytest.raises(ValueError, match="different values"):
        est.Estimator(lambda features: None, tmp_path / "b", config)
    assert est.Estimator(lambda features: None, tmp_path / "a", config).model_dir == str(tmp_path / "a")


def test_variable_values_need_a_checkpoint_and_a_known_name_and_params_are_copies(make_estimator, input_fn):
    estimator = make_estimator()
    estimator.params["learning_rate"] = 7
    assert estimator.params == {"learning_rate": 0.25}
    with pytest.raises(ValueError, match="not been trained"):
        estimator.get_variable_names()
    estimator.train(input_fn, steps=1)
    with pytest.raises(ValueError, match=r"'weigth'.*'weight'"):
        estimator.get_variable_value("weigth")


class _Attributes(dict):
    """Hyperparameters that are read as attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@pytest.mark.parametrize("params", [_Attributes(rate=3), _Attributes()])
def test_params_keep_their_class(tmp_path, eval_input_fn, params):
    received = []

    def model_fn(features, labels, mode, params):
        received.append(params)
        return counting(mode, tf.constant(1.0))

    estimator = est.Estimator(model_fn, tmp_path, params=params).train(eval_input_fn, steps=1)
    assert [type(params) for params in (*received, estimator.params)] == [_Attributes] * 2
    assert received == [params]
    assert received[0] is not params


def test_the_seed_of_the_config_makes_initial_values_repeatable(tmp_path, input_fn):
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", [4], initializer=tf1.random_normal_initializer())
        return counting(mode, tf.reduce_sum(weight) * 0 + tf.reduce_sum(features["x"]) * 0)

    def values(name, seed):
        config = est.RunConfig(model_dir=str(tmp_path / name), tf_random_seed=seed)
        return est.Estimator(model_fn, config=config).train(input_fn, steps=1).get_variable_value("weight")

    np.testing.assert_array_equal(values("a", 1), values("b", 1))
    assert not np.array_equal(values("a", 1), values("c", 2))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("devices", [1, 2])
def test_a_local_init_op_of_the_models_own_leaves_the_loss_its_own(tmp_path, devices):
    """The Scaffold starts the local variable that the model adds to the input, fed with 2."""

    def model_fn(features, labels, mode):
        extra = tf1.get_variable("extra", [], collections=[tf1.GraphKeys.LOCAL_VARIABLES], use_resource=True)
        fed = tf1.placeholder(tf.float32, [])
        metrics = {"mean": tf1.metrics.mean(features["x"] + extra)}
        others = [v.initializer for v in tf1.local_variables() if "mean" in v.name]
        start = {"local_init_op": tf.group(extra.assign(fed), *others), "local_init_feed_dict": {fed: 2.0}}
        parts = {"eval_metric_ops": metrics, "scaffold": tf1.train.Scaffold(**start)}
        return counting(mode, tf.reduce_mean(features["x"]), **parts)

    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]) if devices == 2 else None
    config = est.RunConfig(train_distribute=strategy, eval_distribute=strategy)
    estimator = est.Estimator(model_fn, str(tmp_path), config)
    ones_and_threes = batch_of({"x": [1.0, 3.0]}, [0.0, 0.0], repeat=2)
    hook = est.experimental.InMemoryEvaluatorHook(estimator, ones_and_threes)
    estimator.train(ones_and_threes, hooks=[hook], steps=1)
    assert read_evaluations(estimator.eval_dir())[1]["mean"] == 4.0
    for _ in range(2):
        results = estimator.evaluate(ones_and_threes)
        assert results["mean"] == 4.0
        assert results["loss"] in (2.0, 4.0)  # the mean, or the sum of two replicas


def test_a_copy_of_an_estimator_works_on_its_own(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    before = estimator.evaluate(eval_input_fn)
    copied = copy.deepcopy(estimator)
    assert copied.evaluate(eval_input_fn) == before
    copied.train(input_fn, steps=1)
    assert estimator.evaluate(eval_input_fn)["global_step"] == 2
