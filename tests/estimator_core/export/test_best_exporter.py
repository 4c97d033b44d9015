import json
import os

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import batch_of

_RECEIVER = est.export.build_parsing_serving_input_receiver_fn({"x": tf.io.FixedLenFeature([], tf.float32)})


@pytest.fixture
def trained(make_estimator, input_fn):
    return make_estimator().train(input_fn, steps=1)


def _export(exporter, estimator, result):
    folder = os.path.join(estimator.model_dir, "export", exporter.name)
    return exporter.export(estimator, folder, estimator.latest_checkpoint(), result, False)


def test_only_a_smaller_loss_is_exported(trained):
    exporter = est.BestExporter("best", _RECEIVER)
    exports = [_export(exporter, trained, {"loss": loss}) for loss in (0.5, 0.5, 0.6, float("nan"), 0.4)]
    assert [export is not None for export in exports] == [True, False, False, False, True]


def test_the_best_is_remembered_across_restarts(trained):
    _export(est.BestExporter("best", _RECEIVER), trained, {"loss": 0.5, "global_step": 1})
    restarted = est.BestExporter("best", _RECEIVER, event_file_pattern=None)
    assert _export(restarted, trained, {"loss": 0.7, "global_step": 2}) is None
    # Programs find numbers alone among the exports.
    (name,) = os.listdir(os.path.join(trained.model_dir, "export", "best"))
    assert name.isdigit()
    path = os.path.join(trained.model_dir, "best_eval_result.best.json")
    with open(path) as file:
        assert json.load(file) == {"loss": 0.5, "global_step": 1}


def test_metrics_that_are_arrays_can_be_compared(trained):
    def larger(best_eval_result, current_eval_result):
        return current_eval_result["recalls"].min() > best_eval_result["recalls"].min()

    for recalls, is_better in (([0.5, 0.25], True), ([0.75, 0.125], False), ([0.375, 0.375], True)):
        exporter = est.BestExporter("best", _RECEIVER, compare_fn=larger)  # that of a restart
        result = {"recalls": np.array(recalls, tf.bfloat16.as_numpy_dtype), "summary": b"text"}
        assert (_export(exporter, trained, result) is not None) == is_better


def test_models_do_not_compete_with_each_other(tmp_path, trained, make_estimator, input_fn):
    exporter = est.BestExporter("best", _RECEIVER)
    assert _export(exporter, trained, {"loss": 0.1}) is not None
    other = est.Estimator(trained.model_fn, str(tmp_path / "other")).train(input_fn, steps=1)
    assert _export(exporter, other, {"loss": 0.5}) is not None
    assert _export(exporter, trained, {"loss": 0.2}) is None


def test_earlier_evaluations_in_the_event_files_count(trained, input_fn):
    eval_input_fn = batch_of({"x": [1.0]}, [0.0])
    trained.evaluate(eval_input_fn)  # w = 1 after one step: loss 1
    trained.train(input_fn, steps=1)
    result = trained.evaluate(eval_input_fn)  # w = 1.5: loss 2.25
    exporter = est.BestExporter("best", _RECEIVER)
    os.makedirs(os.path.join(trained.model_dir, "export", "best", "1700000000"))  # tf.estimator's
    assert _export(exporter, trained, result) is None
    assert _export(exporter, trained, {"loss": 0.9}) is not None
    other = est.BestExporter("other", _RECEIVER)  # has exported nothing that could be better
    assert _export(other, trained, result) is not None
    ignorant = est.BestExporter("ignorant", _RECEIVER, event_file_pattern=None)
    assert _export(ignorant, trained, result) is not None


def test_the_comparison_and_the_number_of_exports_are_the_users(trained):
    def larger(best_eval_result, current_eval_result):
        return current_eval_result["accuracy"] > best_eval_result["accuracy"]

    exporter = est.BestExporter("best", _RECEIVER, compare_fn=larger, exports_to_keep=1)
    assert _export(exporter, trained, {"accuracy": 0.5}) is not None
    assert _export(exporter, trained, {"accuracy": 0.4}) is None
    newest = _export(exporter, trained, {"accuracy": 0.6})
    directory = os.path.join(trained.model_dir, "export", "best")
    exports = [name for name in os.listdir(directory) if name.isdigit()]
    assert [os.path.join(directory, name).encode() for name in exports] == [newest]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"serving_input_receiver_fn": None}, ValueError, "serving_input_receiver_fn"),
        ({"compare_fn": None}, ValueError, "compare_fn must not be None"),
        ({"compare_fn": lambda best, current: True}, ValueError, "best_eval_result and current_eval_result"),
        ({"compare_fn": 1}, TypeError, "compare_fn=1"),
        ({"exports_to_keep": 0}, ValueError, "exports_to_keep"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        est.BestExporter(**{"serving_input_receiver_fn": _RECEIVER, **arguments})


def test_a_result_without_a_loss_is_named(trained):
    exporter = est.BestExporter("best", _RECEIVER)
    _export(exporter, trained, {"loss": 1.0})
    with pytest.raises(ValueError, match="current_eval_result must hold 'loss'"):
        _export(exporter, trained, {"accuracy": 1.0})
