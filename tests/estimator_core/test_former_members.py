"""Private members of tf.estimator's Estimator that programs replace, override, call or read."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import estimator_core as est
from estimator_core import tf1
from tests.estimator_core.programs import batch_of

ROWS = {"x": np.array([[1.0], [2.0]], np.float32)}
X = tf.feature_column.numeric_column("x")


input_fn = batch_of(ROWS, np.array([[2.0], [4.0]], np.float32))


def model_fn(features, labels, mode, params):
    """Predicts `scale * x * w`, where w starts at 3."""
    w = tf1.get_variable("w", [], initializer=tf.constant_initializer(3.0))
    predictions = params.get("scale", 1.0) * features["x"] * w
    if mode == "infer":
        outputs = {"serving_default": est.export.PredictOutput(predictions)}
        return est.EstimatorSpec(mode, predictions, export_outputs=outputs)
    loss = tf.reduce_mean(tf.square(predictions - labels))
    train_op = tf.compat.v1.assign_add(tf1.train.get_global_step(), 1)
    return est.EstimatorSpec(mode, predictions, loss, train_op)


receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 1])})


def served(estimator, folder):
    """Returns the served prediction for x = 1."""
    path = estimator.export_saved_model(str(folder), receiver_fn).decode()
    serve = tf.saved_model.load(path, tags=["serve"]).signatures["serving_default"]
    return float(serve(x=tf.constant([[1.0]]))["output"][0, 0])


def predicted(estimator):
    return [float(row[0]) for row in estimator.predict(input_fn)]


def test_a_replaced_model_fn_is_called_in_each_mode(tmp_path):
    estimator = est.Estimator(model_fn, str(tmp_path / "model"), params={"scale": 1.0})
    estimator.train(input_fn, steps=1)
    original = estimator._model_fn

    def ten_times(features, labels, mode, params):
        spec = original({"x": 10.0 * features["x"]}, labels, mode, params)
        return spec if mode == "infer" else spec._replace(loss=spec.loss + 100.0)

    estimator._model_fn = ten_times
    estimator.train(input_fn, steps=1)
    # (30 - 2)^2 and (60 - 4)^2
    assert estimator.evaluate(input_fn)["loss"] == pytest.approx((28**2 + 56**2) / 2 + 100)
    assert predicted(estimator) == [30.0, 60.0]
    assert served(estimator, tmp_path / "exported") == 30.0


@pytest.mark.parametrize("in_place", [False, True])
def test_replaced_params_reach_both_functions(tmp_path, in_place):
    estimator = est.Estimator(model_fn, str(tmp_path), params={"scale": 1.0}).train(input_fn, steps=1)
    seen = []
    if in_place:
        estimator._params["scale"] = 7.0
    else:
        estimator._params = {"scale": 7.0}

    def with_params(params):
        seen.append(dict(params))
        return input_fn()

    assert [float(row[0]) for row in estimator.predict(with_params)] == [21.0, 42.0]
    assert seen == [{"scale": 7.0}]
    assert estimator.params == {"scale": 7.0}


def test_predict_does_not_answer_from_the_graph_of_a_replaced_function(tmp_path):
    estimator = est.LinearRegressor([X], str(tmp_path)).train(input_fn, steps=2)

    def rows():
        return [float(row["predictions"][0]) for row in estimator.predict(input_fn)]

    before = [rows() for _ in range(3)][-1]  # by now its graph is kept
    model_fn, call_model_fn = estimator._model_fn, estimator._call_model_fn

    def sevens(*args):
        spec = call_model_fn(*args)
        return spec._replace(predictions={"predictions": 0 * spec.predictions["predictions"] + 7})

    @functools.wraps(model_fn)
    def negated(features, labels, mode, config):
        spec = model_fn(features=features, labels=labels, mode=mode, config=config)
        return spec._replace(predictions={"predictions": -spec.predictions["predictions"]})

    estimator._call_model_fn = sevens
    assert rows() == [7.0, 7.0]
    estimator._call_model_fn, estimator._model_fn = call_model_fn, negated
    assert [rows() for _ in range(3)] == [[-value for value in before]] * 3


class Overriding(est.Estimator):
    """Overrides what tf.estimator calls, with its check switched off."""

    @staticmethod
    def _assert_members_are_not_overridden(estimator):
        del estimator

    def _call_model_fn(self, features, labels, mode, config):
        return super()._call_model_fn({"x": features["x"] * 2.0}, labels, mode, config)

    def _call_input_fn(self, input_fn, mode, input_context=None):
        dataset = super()._call_input_fn(input_fn, mode, input_context)
        return dataset.map(lambda features, labels: ({"x": features["x"] + 1.0}, labels))


def test_overridden_calls_are_obeyed(tmp_path):
    class Before113(Overriding):
        def _call_input_fn(self, input_fn, mode):  # without a context, which there is none of
            return super()._call_input_fn(input_fn, mode)

    assert predicted(Before113(model_fn, params={})) == [12.0, 18.0]
    estimator = Overriding(model_fn, str(tmp_path / "model"), params={}).train(input_fn, steps=1)
    assert predicted(estimator) == [12.0, 18.0]  # 3 * 2 * (x + 1)
    assert estimator.evaluate(input_fn)["loss"] == pytest.approx((10**2 + 14**2) / 2)
    assert served(estimator, tmp_path / "exported") == 6.0
    assert estimator.model_fn is not None


def test_an_overridden_global_step_and_an_overridden_export_are_obeyed(tmp_path):
    class Own(est.Estimator):
        def _create_and_assert_global_step(self, graph):
            with graph.as_default():
                collections = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.GLOBAL_STEP]
                settings = {"trainable": False, "collections": collections}
                return tf1.get_variable("global_step", [], tf.int64, tf.constant_initializer(100), **settings)

        def _export_all_saved_models(self, export_dir_base, *args, **kwargs):
            return super()._export_all_saved_models(export_dir_base + "/own", *args, **kwargs)

    estimator = Own(model_fn, str(tmp_path / "model"), params={}).train(input_fn, steps=1)
    assert estimator.get_variable_value("global_step") == 101
    path = estimator.export_saved_model(str(tmp_path), receiver_fn).decode()
    assert path.startswith(str(tmp_path / "own"))


def test_an_override_that_nothing_would_call_is_refused_without_the_check():
    subclass = type("Own", (Overriding,), {"_train_model": lambda self, *args: None})
    for own in (subclass, type("Below", (subclass,), {})):
        with pytest.raises(ValueError, match=r"overrides \['_train_model'\].*never calls"):
            own(model_fn, params={})


def test_settings_that_programs_read(as_task):
    session_config = tf1.ConfigProto(inter_op_parallelism_threads=3)
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    both = {"train_distribute": strategy, "eval_distribute": strategy}
    config = est.RunConfig(session_config=session_config, device_fn=lambda op: "/cpu:0", **both)
    estimator = est.Estimator(model_fn, config=config, params={}, warm_start_from="old")
    assert estimator._session_config.inter_op_parallelism_threads == 3
    assert estimator._device_fn is config.device_fn
    assert estimator._train_distribution is estimator._eval_distribution is strategy
    assert estimator._warm_start_settings.ckpt_to_initialize_from == "old"

    assert est.Estimator(model_fn, params={})._device_fn is None
    as_task("chief", tasks={"chief": ["a:1"], "ps": ["b:1", "b:2"]})
    device_fn = est.Estimator(model_fn, params={})._device_fn
    with tf.Graph().as_default(), tf1.device(device_fn):
        variables = [tf1.get_variable(name, []) for name in "ab"]
        sum_of_both = variables[0] + variables[1]
    assert [variable.device for variable in variables] == ["/job:ps/task:0", "/job:ps/task:1"]
    assert sum_of_both.device == "/job:chief/task:0"


def test_helpers_that_programs_call():
    estimator = est.Estimator(model_fn, params={})
    with tf.Graph().as_default():
        features, labels, hooks = estimator._get_features_and_labels_from_input_fn(input_fn, "train")
        only_features, _ = estimator._get_features_from_input_fn(input_fn, "infer")
        with tf1.train.MonitoredSession(hooks=hooks) as session:
            assert session.run(labels).tolist() == [[2.0], [4.0]]
    assert features["x"].shape == only_features["x"].shape == [2, 1]
    assert estimator._extract_batch_length({"a": np.zeros([3, 2]), "b": np.zeros(3)}) == 3
    with pytest.raises(ValueError, match=r"Batch length .*'a': 3, 'b': 2"):
        estimator._extract_batch_length({"a": np.zeros(3), "b": np.zeros(2)})
    predictions = {"a": 1, "b": 2}
    assert estimator._extract_keys(predictions, ["b"]) == {"b": 2}
    assert estimator._extract_keys(predictions, None) == predictions


def test_a_step_of_tf_estimator_says_what_to_use_instead():
    estimator = est.Estimator(model_fn, params={})
    with pytest.raises(AttributeError, match=r"no _train_model, .* Use train\(\) with hooks"):
        estimator._train_model(input_fn, [], [])
    assert not hasattr(estimator, "_evaluate_run")
    with pytest.raises(AttributeError, match=r"Use train\(\) with hooks"):
        estimator._train_model = lambda *args: None
    with pytest.raises(AttributeError, match=r"never calls _get_features_and.*Replace _call_input_fn"):
        estimator._get_features_and_labels_from_input_fn = lambda *args: None


def test_replaced_settings_count(tmp_path):
    estimator = est.Estimator(model_fn, str(tmp_path), params={})
    devices, session_configs = [], []

    def on_cpu(op):
        devices.append(op.type)
        return "/cpu:0"

    class Seen(tf1.train.SessionRunHook):
        def after_create_session(self, session, coord):
            session_configs.append(session._config.inter_op_parallelism_threads)

    estimator._device_fn = on_cpu
    estimator._session_config = tf1.ConfigProto(inter_op_parallelism_threads=3)
    estimator.train(input_fn, steps=1, hooks=[Seen()])
    assert "VarHandleOp" in devices
    assert session_configs == [3]

    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    estimator._train_distribution = estimator._eval_distribution = strategy
    assert estimator.config.train_distribute is estimator.config.eval_distribute is strategy


def test_a_subclass_may_have_attributes_and_errors_of_its_own():
    class Mixin:
        def __getattr__(self, name):
            if name == "from_mixin":
                return 5
            raise AttributeError(name)

    class Own(est.Estimator, Mixin):
        def __init__(self):
            self._model = "network"
            super().__init__(model_fn, params={})
            self._fingerprint = self._evaluate = "own"

    class Failing(est.Estimator):
        @property
        def broken(self):
            return self.config.no_setting

    estimator = Own().train(input_fn, steps=1)
    estimator.evaluate(input_fn)
    assert predicted(estimator) == [3.0, 6.0]
    assert (estimator._model, estimator._evaluate, estimator.from_mixin) == ("network", "own", 5)
    with pytest.raises(AttributeError, match="no_setting"):
        Failing(model_fn, params={}).broken  # noqa: B018


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", [1, 2])
def test_a_replaced_model_fn_of_a_tpu_estimator_is_trained_and_exported(tmp_path, version):
    def make(use_tpu):
        config = est.tpu.RunConfig(model_dir=str(tmp_path / "model"))
        settings = {"train_batch_size": 8, "predict_batch_size": 2, "export_saved_model_api_version": version}
        estimator = est.tpu.TPUEstimator(model_fn, config=config, params={}, use_tpu=use_tpu, **settings)
        original = estimator._model_fn
        estimator._model_fn = lambda features, labels, mode, config, params: original(
            {"x": 10.0 * features["x"]}, labels, mode, config, params
        )
        return estimator

    estimator = make(use_tpu=False).train(lambda params: input_fn(), steps=1)
    assert [float(row[0]) for row in estimator.predict(lambda params: input_fn())] == [30.0, 60.0]
    for each in (make(use_tpu=True).with_shards(2), estimator, make(use_tpu=True)):
        assert served(each, tmp_path / "exported") == 30.0
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((max((tmp_path / "exported").iterdir()) / "saved_model.pb").read_bytes())
    (graph,) = [each.graph_def for each in model.meta_graphs if "tpu" in each.meta_info_def.tags]
    on_tpu = [each.node_def for each in graph.library.function if "tpu_subgraph" in each.signature.name]
    assert len(on_tpu) == (version == 1)
    constants = [node.attr["value"].tensor for node in (*on_tpu, graph.node)[0] if node.op == "Const"]
    assert 10.0 in [value.float_val[0] for value in constants if value.float_val]
