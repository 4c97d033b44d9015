"""The expected values and types of errors are those of tf.estimator 2.15."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core
from estimator_core import summaries
from estimator_core.installation import old_estimator
from tests.estimator_core.installation.test_old_helpers import input_fn, model_fn

export = estimator_core.export


def test_the_global_step_of_a_model_dir(tmp_path):
    make_step = old_estimator._load_global_step_from_checkpoint_dir
    model_dir = tmp_path / "model"
    assert make_step(str(model_dir)) == 0
    estimator_core.Estimator(model_fn, str(model_dir)).train(input_fn, steps=3)
    assert make_step(str(model_dir)) == 3
    for path in model_dir.glob("*.index"):
        path.write_bytes(b"")
    assert make_step(str(model_dir)) == 0


def test_hooks_and_listeners_must_be_such():
    hook, listener = tf1.train.SessionRunHook(), tf1.train.CheckpointSaverListener()
    assert old_estimator._check_hooks_type((hook,)) == [hook]
    assert old_estimator._check_hooks_type(None) == []
    assert old_estimator._check_listeners_type([listener]) == [listener]
    with pytest.raises(TypeError, match="hooks"):
        old_estimator._check_hooks_type([3])
    with pytest.raises(TypeError, match="saving_listeners"):
        old_estimator._check_listeners_type([hook])


def test_variables_are_placed_on_parameter_servers(monkeypatch):
    assert old_estimator._get_replica_device_setter(estimator_core.RunConfig()) is None
    cluster = '{"chief": ["a:1"], "ps": ["b:1", "c:1"]}'
    monkeypatch.setenv("TF_CONFIG", f'{{"cluster": {cluster}, "task": {{"type": "chief", "index": 0}}}}')
    setter = old_estimator._get_replica_device_setter(estimator_core.RunConfig())
    with tf.Graph().as_default(), tf1.device(setter):
        variables = [tf1.get_variable(name, []) for name in "ab"]
        other = tf.constant(1)
    assert [variable.device for variable in variables] == ["/job:ps/task:0", "/job:ps/task:1"]
    assert other.device == "/job:chief/task:0"


def test_a_model_fn_must_take_features():
    old_estimator._verify_model_fn_args(model_fn, None)
    with pytest.raises(ValueError, match="features"):
        old_estimator._verify_model_fn_args(lambda labels: None, None)


def test_metrics_are_divided_into_updates_and_values(session):
    metrics = {name: tf1.metrics.mean(tf.constant(value)) for name, value in (("b", 2.0), ("a", 4.0))}
    update_op, values = old_estimator._extract_metric_update_ops(metrics)
    session.run(tf1.local_variables_initializer())
    session.run(update_op)
    assert session.run(values) == {"a": 4.0, "b": 2.0}
    assert old_estimator._extract_metric_update_ops({}) == (None, {})


def test_results_are_written_for_tensorboard(tmp_path):
    old_estimator._write_dict_to_summary(str(tmp_path), {"loss": 0.5, "global_step": 7}, 7)
    assert summaries.read_evaluations(str(tmp_path)) == {7: {"loss": 0.5}}


def test_elements_of_an_input():
    assert old_estimator.parse_iterator_result(({"x": 1}, 2)) == ({"x": 1}, 2)
    assert old_estimator.parse_iterator_result({"x": 1}) == ({"x": 1}, None)
    with pytest.raises(ValueError, match="2"):
        old_estimator.parse_iterator_result((1, 2, 3))


def test_directories_of_an_export(tmp_path):
    path = old_estimator.get_timestamped_export_dir(str(tmp_path))
    assert isinstance(path, bytes)
    assert path.startswith(bytes(tmp_path))
    assert old_estimator.get_temp_export_dir(b"/exports/12") == b"/exports/temp-12"
    assert old_estimator.get_temp_export_dir("/exports/12") == b"/exports/temp-12"


def test_signatures_for_a_tensor_and_for_alternatives(graph):
    outputs = {"serving_default": export.PredictOutput(tf.constant([1.0]))}
    scores = {"classification": export.ClassificationOutput(scores=tf.constant([[1.0]]))}
    serialized, number = tf1.placeholder(tf.string), tf1.placeholder(tf.float32)
    signatures = old_estimator.build_all_signature_defs(serialized, outputs | scores)
    assert sorted(signatures) == ["classification", "serving_default"]
    assert list(signatures["serving_default"].inputs) == ["input"]
    given = {"examples": serialized}, outputs, {"other": {"x": number}}
    assert sorted(old_estimator.build_all_signature_defs(*given)) == [
        "other:serving_default",
        "serving_default",
    ]
    with pytest.raises(ValueError, match="export_outputs must be a dict"):
        old_estimator.build_all_signature_defs(serialized, None)


def test_a_gauge_takes_any_value():
    old_estimator._canned_estimator_api_gauge.get_cell("Classifier").set("DNN")
    old_estimator._estimator_api_gauge.get_cell("train").set(True)
    assert (old_estimator.LOSS_METRIC_KEY, old_estimator.AVERAGE_LOSS_METRIC_KEY) == ("loss", "average_loss")
