"""Prediction intervals: their ends by hand, their coverage, and their part in a model."""

import math

import numpy as np
import pytest
import tensorflow as tf

import estimator_core
from pipelines.tabular.held_out import HeldOut
from pipelines.tabular.interval import Interval, choose_interval, read_interval, with_interval, write_interval
from pipelines.tabular.plan import fewest_rows_of_interval


def held_out(labels, predictions, weights=None):
    weights = np.ones(len(labels)) if weights is None else weights
    return HeldOut(np.asarray(labels), np.asarray(predictions, float)[:, np.newaxis], weights)


def test_the_ends_of_a_few_rows_by_hand():
    """With 19 rows and 90 %, a tail of 5 % is one of 20: the largest error on each side."""
    errors = np.arange(-9.0, 10.0)
    interval = choose_interval(0.9, held_out(100 + errors, np.full(19, 100.0)))
    assert (interval.edges, interval.below, interval.above) == ([], [9.0], [9.0])
    # 80 %: a tail of 10 %, the 18th of 19 errors.
    interval = choose_interval(0.8, held_out(100 + errors, np.full(19, 100.0)))
    assert (interval.below, interval.above) == ([8.0], [8.0])


def test_a_row_of_weight_three_is_three_rows():
    random = np.random.default_rng(1)
    labels, weights = random.gumbel(size=60), random.integers(1, 4, 60)
    once = choose_interval(0.8, held_out(labels, np.zeros(60), weights.astype(float)))
    copies = choose_interval(0.8, held_out(np.repeat(labels, weights), np.zeros(weights.sum())))
    # A further row has the mean weight, here nearly two copies; both take the same errors.
    assert (once.below, once.above) == (copies.below, copies.above)
    assert once.below != once.above


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_new_rows_are_covered_where_numbers_are_small_and_where_they_are_large(level):
    """Errors are skewed, and proportional to the prediction."""
    random = np.random.default_rng(5)

    def draw(size):
        predictions = random.uniform(1, 100, size)
        return predictions * random.lognormal(0, 0.3, size), predictions

    interval = choose_interval(level, held_out(*draw(3_000)))
    labels, predictions = draw(100_000)
    ranges = np.searchsorted(interval.edges, predictions, side="right")
    low = predictions - np.array(interval.below)[ranges]
    high = predictions + np.array(interval.above)[ranges]
    for mask in (predictions > 0, predictions < 20, predictions > 80):
        assert np.mean((labels < low)[mask]) == pytest.approx((1 - level) / 2, abs=0.03)
        assert np.mean((labels > high)[mask]) == pytest.approx((1 - level) / 2, abs=0.03)
    assert np.mean((high - low)[predictions < 20]) < 0.3 * np.mean((high - low)[predictions > 80])


def test_equal_predictions_share_a_range():
    random = np.random.default_rng(2)
    predictions = np.where(np.arange(1_000) < 900, 7.0, 8.0)
    interval = choose_interval(0.9, held_out(predictions + random.normal(size=1_000), predictions))
    assert interval.edges == [7.0]
    assert interval.below == pytest.approx([1.64, 1.64], abs=0.2)  # of no row below 7: the errors of all


@pytest.mark.parametrize(("level", "rows"), [(0.5, 3), (0.8, 9), (0.9, 19), (0.95, 39), (0.99, 199)])
def test_the_fewest_rows(level, rows):
    assert fewest_rows_of_interval(level) == rows
    assert math.isclose(1 / (rows + 1), (1 - level) / 2)


def test_a_model_serves_the_ends_of_its_ranges(tmp_path):
    interval = Interval(0.9, [10.0, 20.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 500)
    write_interval(str(tmp_path / "interval.json"), interval)
    assert read_interval(str(tmp_path / "interval.json")) == interval

    def model_fn(features, labels, mode):
        head = estimator_core.RegressionHead()
        unit = tf.compat.v1.get_variable("unit", initializer=1.0)
        step = tf.compat.v1.train.get_global_step()
        return head.create_estimator_spec(
            features, mode, features["x"] * unit, labels, train_op_fn=lambda loss: step.assign_add(1)
        )

    def rows():
        return tf.data.Dataset.from_tensors(({"x": [[9.5], [10.0], [15.0], [25.0]]}, [[0.0]] * 4))

    estimator = with_interval(estimator_core.Estimator(model_fn, str(tmp_path / "model")), interval)
    estimator.train(rows, steps=1)
    receiver = estimator_core.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 1])})
    folder = estimator.export_saved_model(str(tmp_path / "export"), receiver)
    outputs = tf.saved_model.load(folder.decode()).signatures["predict"](x=next(iter(rows()))[0]["x"])
    ends = np.stack([outputs[name].numpy().ravel() for name in ("lower", "predictions", "upper")], axis=1)
    assert ends.tolist() == [[8.5, 9.5, 13.5], [8, 10, 15], [13, 15, 20], [22, 25, 31]]
