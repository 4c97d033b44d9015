import functools
import os

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.experimental.local_cluster import free_ports
from tests.estimator_core import shard_programs
from tests.estimator_core.programs import scalars_of

_kept = []  # a server lives as long as its object


def model_fn(features, labels, mode, params):
    """prediction = weight * x, with the optimizer wrapped as it is for a TPU."""
    return shard_programs.model_fn(features, labels, mode, {"rate": 0.25})


def input_fn(params, mode):
    """Labels are twice x, and x is 1, so that a step halves the distance to a weight of 2."""
    dataset = tf.data.Dataset.from_tensor_slices(({"x": [1.0] * 6}, [2.0] * 6))
    dataset = dataset.repeat() if mode == est.ModeKeys.TRAIN else dataset
    return dataset.batch(params["batch_size"])


@pytest.fixture
def make(tmp_path):
    def make_estimator(model_fn=model_fn, config=None, **arguments):
        config = config or tpu.RunConfig(model_dir=str(tmp_path / "model"))
        sizes = {"train_batch_size": 2, "eval_batch_size": 3, "predict_batch_size": 4}
        return tpu.TPUEstimator(model_fn, config=config, **{"use_tpu": False, **sizes, **arguments})

    return make_estimator


def test_train_evaluate_predict(make):
    estimator = make()
    assert estimator.train(input_fn, steps=3) is estimator
    # 2 - 2 / 2^3; CrossShardOptimizer has one shard, whose gradient is the sum of all.
    assert estimator.get_variable_value("weight") == 1.75
    metrics = estimator.evaluate(input_fn)
    assert (metrics["mae"], metrics["loss"]) == (0.25, 0.0625)
    assert metrics["batch_size"] == 3
    assert [float(row["y"]) for row in estimator.predict(input_fn)] == [1.75] * 6
    batches = estimator.predict(input_fn, yield_single_examples=False)
    assert [len(batch["y"]) for batch in batches] == [4, 2]


def test_without_batch_sizes(make):
    estimator = make(train_batch_size=None, eval_batch_size=None, predict_batch_size=None)

    def sizeless_input_fn(params):
        assert "batch_size" not in params
        return input_fn({"batch_size": 6}, est.ModeKeys.EVAL)

    estimator.train(sizeless_input_fn)
    assert estimator.get_variable_value("weight") == 1.0


def test_an_input_fn_made_with_partial(make):
    partial = functools.partial(input_fn, mode=est.ModeKeys.TRAIN)
    assert make().train(partial, steps=1).get_variable_value("weight") == 1.0


def test_a_model_fn_that_returns_an_estimator_spec(make):
    def converted_model_fn(features, labels, mode, params):
        return model_fn(features, labels, mode, params).as_estimator_spec()

    assert make(converted_model_fn).train(input_fn, steps=1).evaluate(input_fn)["mae"] == 1.0


class HyperParameters:
    """The interface of HParams, which TensorFlow 1 had."""

    def __init__(self):
        self.values = {"batch_size_factor": 2}

    def __contains__(self, name):
        return name in self.values

    def __getitem__(self, name):
        return self.values[name]

    def add_hparam(self, name, value):
        assert name not in self.values
        self.values[name] = value

    def set_hparam(self, name, value):
        assert name in self.values
        self.values[name] = value


def test_params_of_another_kind(make):
    estimator = make(params=HyperParameters())
    assert estimator.train(input_fn, steps=1).evaluate(input_fn)["batch_size"] == 3
    assert "batch_size" not in estimator.params


def test_functions_without_params(make):
    with pytest.raises(ValueError, match=r"input_fn .* does not include params"):
        make().train(lambda: None, steps=1)
    with pytest.raises(ValueError, match=r"model_fn .* does not include params"):
        make(lambda features, labels, mode: None).train(input_fn, steps=1)


def test_speed_is_logged_in_examples(make, tmp_path):
    """With iterations_per_loop=4, every ceil(10 / 4) = 3 steps; the first step starts the clock."""
    config = tpu.RunConfig(
        tpu.TPUConfig(iterations_per_loop=4), model_dir=str(tmp_path / "model"), log_step_count_steps=10
    )
    make(config=config).train(input_fn, steps=9)
    rates = scalars_of(config.model_dir)
    assert list(rates["examples/sec"]) == [4, 7]
    for step, rate in rates["global_step/sec"].items():
        assert rates["examples/sec"][step] == pytest.approx(2 * rate)


def test_the_exported_model_answers_and_is_built_without_a_batch_size(make, tmp_path):
    seen = []

    def noting_model_fn(features, labels, mode, params):
        seen.append(dict(params))
        return model_fn(features, labels, mode, params)

    estimator = make(noting_model_fn, params={"a": 1}, export_to_tpu=False).train(input_fn, steps=3)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn)
    assert seen[-1] == {"a": 1, "use_tpu": False}
    signature = tf.saved_model.load(os.fsdecode(path)).signatures["serving_default"]
    np.testing.assert_allclose(signature(x=tf.constant([1.0, 2.0]))["y"], [1.75, 3.5])


def test_export_of_nothing(make, tmp_path):
    with pytest.raises(ValueError, match="export_to_cpu and export_to_tpu"):
        make(export_to_cpu=False, export_to_tpu=False).export_saved_model(str(tmp_path), lambda: 0)
    with pytest.raises(RuntimeError, match="needs a TPU"):
        make(export_to_cpu=False).export_saved_model(str(tmp_path), lambda: 0)


def test_a_warm_start_takes_over_the_weight(make, tmp_path):
    first = make().train(input_fn, steps=2)
    second = make(config=tpu.RunConfig(model_dir=str(tmp_path / "second")), warm_start_from=first.model_dir)
    second.train(input_fn, steps=1)
    assert second.get_variable_value("weight") == 1.75  # 1.5 after two steps, then one more


def test_train_and_evaluate(make):
    estimator = make()
    metrics, _ = est.train_and_evaluate(
        estimator, est.TrainSpec(input_fn, max_steps=3), est.EvalSpec(input_fn, steps=None)
    )
    assert (metrics["global_step"], metrics["mae"]) == (3, 0.25)


def test_evaluation_in_memory(make):
    """The hook evaluates with the batch size of evaluation, as train_and_evaluate does."""
    estimator = make()
    hook = est.experimental.InMemoryEvaluatorHook(estimator, input_fn, steps=1, every_n_iter=2)
    estimator.train(input_fn, steps=4, hooks=[hook])
    assert set(scalars_of(estimator.eval_dir())["batch_size"].values()) == {3.0}


def test_a_predictor_answers_with_the_trained_weight(make):
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})
    with make().train(input_fn, steps=3).predictor(receiver_fn) as predict:
        np.testing.assert_allclose(predict({"x": [1.0, 2.0]})["y"], [1.75, 3.5])
    with make(use_tpu=True).predictor(receiver_fn) as predict:  # one copy, whatever trained it
        np.testing.assert_allclose(predict({"x": [1.0]})["y"], [1.75])


def test_evaluation_off_the_tpu(make):
    """With eval_on_tpu=False a TPUEstimator evaluates here a model trained there."""
    make().train(input_fn, steps=3)
    assert make(use_tpu=True, eval_on_tpu=False).evaluate(input_fn)["mae"] == 0.25


@pytest.mark.parametrize("master", ["grpc://127.0.0.1:1", "grpc://127.0.0.1"])
def test_a_master_that_does_not_answer_is_refused_at_once(make, tmp_path, master):
    config = tpu.RunConfig(master=master, model_dir=str(tmp_path / "model"))
    with pytest.raises(RuntimeError, match=r"No TensorFlow server answers.*leave master"):
        make(config=config).train(input_fn, steps=1)


def test_one_copy_runs_on_the_server_of_master(make, tmp_path):
    (port,) = free_ports(1)
    server = tf1.train.Server({"there": [f"127.0.0.1:{port}"]}, "there")
    _kept.append(server)
    config = tpu.RunConfig(master=server.target, model_dir=str(tmp_path / "model"))
    devices = []

    class Devices(tf1.train.SessionRunHook):
        def after_create_session(self, session, coord):
            devices.extend(device.name for device in session.list_devices())

    estimator = make(config=config).train(input_fn, hooks=[Devices()], steps=3)
    assert estimator.get_variable_value("weight") == 1.75
    assert estimator.evaluate(input_fn)["mae"] == 0.25
    assert any(device.startswith("/job:there/") for device in devices)


TWO_CORES = tpu.RunConfig(tpu.TPUConfig(num_cores_per_replica=2, per_host_input_for_training=False))


# The types are those that tf.estimator 2.15 raises.
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"config": est.RunConfig()}, ValueError, "tpu.RunConfig"),
        ({"model_fn": None}, TypeError, "model_fn must be callable"),
        ({"params": {"batch_size": 3}}, ValueError, "reserved"),
        ({"params": {"context": 3}}, ValueError, "reserved"),
        ({"export_saved_model_api_version": 3}, ValueError, "should be 1 or 2"),
        ({"use_tpu": True, "train_batch_size": None}, ValueError, "train_batch_size"),
        ({"use_tpu": True, "train_batch_size": 0}, ValueError, "train_batch_size"),
        ({"use_tpu": True, "train_batch_size": 2.5}, TypeError, "train_batch_size"),
        ({"use_tpu": True, "eval_batch_size": -1}, ValueError, "eval_batch_size"),
        ({"use_tpu": True, "predict_batch_size": "8"}, TypeError, "predict_batch_size"),
        ({"use_tpu": True, "config": TWO_CORES}, ValueError, "per host input"),
        ({"embedding_config_spec": 5}, TypeError, "EmbeddingConfigSpec"),
        *(
            ({"use_tpu": True, "config": tpu.RunConfig(**{name: object()})}, ValueError, f"leave {name} out")
            for name in ("train_distribute", "eval_distribute", "experimental_distribute")
        ),
    ],
)
def test_bad_arguments_are_refused(make, arguments, error, message):
    with pytest.raises(error, match=message):
        make(**arguments)


def test_virtual_shards_are_no_cluster(make, as_task):
    as_task("worker", tasks={"chief": ["c:1"], "worker": ["w:1"], "ps": ["p:1"]})
    with pytest.raises(RuntimeError, match=r"Received: a cluster with .*'chief', 'ps', 'worker'"):
        make(use_tpu=True, config=tpu.RunConfig()).train(input_fn, steps=1)


def test_a_config_is_needed():
    with pytest.raises(ValueError, match="config must be given"):
        tpu.TPUEstimator(model_fn, use_tpu=False)


def test_metrics_can_be_added(make):
    """`add_metrics` adds them, and so does the model_fn of another Estimator that calls the first."""
    estimator = make().train(input_fn, steps=1)  # the weight is 1

    def wrapping(features, labels, mode, config):
        spec = estimator.model_fn(features, labels, mode, config)
        metrics = {**spec.eval_metric_ops, "label": tf1.metrics.mean(labels)}
        return spec._replace(eval_metric_ops=metrics)

    extended = est.add_metrics(estimator, lambda labels: {"label": tf1.metrics.mean(labels)})
    for other in (extended, est.Estimator(wrapping, estimator.model_dir)):
        metrics = other.evaluate(lambda: input_fn({"batch_size": 3}, est.ModeKeys.EVAL))
        assert (metrics["mae"], metrics["label"]) == (1.0, 2.0)
