import pytest
import tensorflow as tf

import estimator_core as est


def test_metrics_are_added_and_replaced(make_estimator, input_fn, eval_input_fn):
    def metric_fn(features, labels, predictions):
        mean = tf.compat.v1.metrics.mean
        return {"largest": mean(tf.reduce_max(features["x"])), "mae": mean(predictions["y"] - labels)}

    estimator = make_estimator()
    estimator.train(input_fn, steps=1)  # w = 1, predictions are 1, 2 and 3, labels 0
    extended = est.add_metrics(estimator, metric_fn)
    results = extended.evaluate(eval_input_fn)
    # The largest x of the batches [1, 2] and [3]; without the absolute value "mae" is still 2.
    assert results["largest"] == pytest.approx(2.5)
    assert results["mae"] == pytest.approx(2.0)
    assert "largest" not in estimator.evaluate(eval_input_fn)
    assert extended.model_dir == estimator.model_dir
    extended.train(input_fn, steps=1)
    assert estimator.get_variable_value("global_step") == 2


def test_unknown_arguments_are_named(make_estimator):
    with pytest.raises(ValueError, match=r"\['weights'\]"):
        est.add_metrics(make_estimator(), lambda labels, weights: {})


def test_the_warm_start_is_kept(make_estimator, input_fn, tmp_path):
    source = make_estimator().train(input_fn, steps=1)  # w = 1
    warm = est.Estimator(
        source._model_fn, tmp_path / "warm", params={"learning_rate": 0.25}, warm_start_from=source.model_dir
    )
    extended = est.add_metrics(warm, lambda labels: {}).train(input_fn, steps=1)
    # A step halves the distance of w to 2.
    assert extended.get_variable_value("weight") == pytest.approx(1.5)
