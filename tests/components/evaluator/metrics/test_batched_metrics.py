"""Sums over arrays, against values by hand; `test_executor.py` holds them against TFMA's own."""

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.metrics.batched_metrics import Rows, all_sums, make_sums


def computations(metric, more=""):
    """Returns TFMA's computations of one metric."""
    text = f"model_specs {{}} metrics_specs {{ metrics {{ {metric} }} {more} }}"
    config = text_format.Parse(text, config_pb2.EvalConfig())
    found = metric_specs.to_computations(list(config.metrics_specs), eval_config=config)
    return [c for c in found if isinstance(c, metric_types.MetricComputation)]


def sums_of(metric):
    (computation,) = computations(metric)
    sums = make_sums(computation)
    assert sums is not None
    return sums


def only(metrics):
    (value,) = metrics.values()
    return value


def rows(labels, predictions, weights=None):
    weights = None if weights is None else np.array(weights, np.float64)
    return Rows(np.array(labels), {"": np.array(predictions, np.float64)}, weights)


def output(sums, *parts):
    """The one metric of two parts that were added up."""
    first, second = (sums.add(rows(*part)) for part in parts)
    return only(sums.output(sums.merge(first, second)))


def test_class_ids_against_probabilities_count_once_for_each_class():
    key = metric_types.MetricKey("m", example_weighted=True)
    labels, predictions, weights = rows([1, 0], [[0.2, 0.8], [0.6, 0.4]], [2.0, 3.0]).flat(key)
    assert labels.tolist() == [0, 1, 1, 0]
    assert predictions.tolist() == [0.2, 0.8, 0.6, 0.4]
    assert weights.tolist() == [2, 2, 3, 3]
    unweighted = metric_types.MetricKey("m", example_weighted=False)
    assert rows([1, 0], [0.2, 0.6], [2.0, 3.0]).flat(unweighted)[2].tolist() == [1, 1]


# Errors 0.5, 1 and 2: squares 0.25 + 1 + 4 = 5.25, absolute values 3.5; over 3 examples. That without a
# label is left out.
ERRORS = ([1.0, 2.0], [1.5, 3.0]), ([5.0, np.nan], [3.0, 1.0])
# 2 of 3 are right, and 1 of 1.
CHOSEN = ([0, 1, 2], [[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]), ([1], [[0.2, 0.7, 0.1]])
# 0, -log(3/4), -log(1/2) and 0 again, over 4 examples.
SURE, SURE_ENTROPY = (([1, 0], [1.0, 0.25]), ([1, 0], [0.5, 0.0])), (np.log(4 / 3) + np.log(2)) / 4


@pytest.mark.parametrize(
    ("metric", "parts", "expected"),
    [
        ("ExampleCount", (([1, 0, 1], [0, 0, 0]), ([1], [0])), 4),
        ("MeanSquaredError", ERRORS, 1.75),
        ("MeanAbsoluteError", ERRORS, 3.5 / 3),
        ("SparseCategoricalAccuracy", CHOSEN, 0.75),
        ("BinaryCrossentropy", SURE, pytest.approx(SURE_ENTROPY, abs=1e-6)),
    ],
)
def test_a_metric_of_two_batches_by_hand(metric, parts, expected):
    assert output(sums_of(f'class_name: "{metric}"'), *parts) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["MeanSquaredError", "MeanAbsoluteError"])
def test_an_error_without_labels_is_no_number(metric):
    sums = sums_of(f'class_name: "{metric}"')
    assert np.isnan(only(sums.output(sums.add(rows([np.nan], [1.0])))))


@pytest.mark.parametrize(
    "metric", ["BinaryCrossentropy", "RootMeanSquaredError", "SparseCategoricalAccuracy"]
)
def test_a_mean_over_rows_of_weight_0_is_no_number(metric):
    (computation,) = computations(f'class_name: "{metric}"', "example_weights { weighted: true }")
    sums = make_sums(computation)
    nothing = ([1, 0], [0.75, 0.5], [0, 0])
    if metric.startswith("Sparse"):
        nothing = ([1, 0], [[0.25, 0.75], [0.5, 0.5]], [0, 0])
    assert np.isnan(output(sums, nothing, nothing))
    assert np.isfinite(output(sums, nothing, (*nothing[:2], [0, 1])))


def test_totals_of_labels_and_predictions():
    sums = sums_of('class_name: "MeanLabel"')
    totals = output(sums, ([1, 0], [0.75, 0.5]), ([1], [0.25]))
    assert (totals.total_weighted_labels, totals.total_weighted_predictions) == (2, 1.5)
    assert totals.total_weighted_examples == 3


def test_a_confusion_matrix_at_a_threshold():
    sums = sums_of('class_name: "Precision" config: \'{"thresholds": 0.5}\'')
    # Above 0.5: 0.9 (right), 0.7 (wrong). Not above: 0.5 (missed), 0.1 (right).
    matrix = output(sums, ([1, 0], [0.9, 0.7]), ([1, 0], [0.5, 0.1]))[0.5].matrix
    assert (matrix.tp, matrix.fp, matrix.fn, matrix.tn) == (1, 1, 1, 1)


def test_a_histogram_keeps_the_buckets_that_are_not_empty():
    sums = sums_of('class_name: "AUC"')
    buckets = output(sums, ([1, 0], [0.25, 0.75]), ([1, 1], [0.25, 1.5]))
    # 10,000 buckets over [0, 1], then one for values above.
    assert [bucket.bucket_id for bucket in buckets] == [2501, 7501, 10_001]
    assert [bucket.weighted_labels for bucket in buckets] == [2, 0, 1]
    assert [bucket.weighted_predictions for bucket in buckets] == [0.5, 0.75, 1.5]
    assert [bucket.weighted_examples for bucket in buckets] == [2, 1, 1]


@pytest.mark.parametrize(
    ("label", "prediction", "message"),
    [(1, np.nan, "not numbers"), (2, 0.5, r"between 0 and 1\. Received: 2")],
)
def test_what_is_no_probability_is_refused(label, prediction, message):
    with pytest.raises(ValueError, match=message):
        sums_of('class_name: "AUC"').add(rows([label], [prediction]))


@pytest.mark.parametrize(
    ("metric", "more"),
    [("BinaryCrossEntropy", ""), ("SetMatchPrecision", ""), ("AUC", "binarize { class_ids { values: 1 } }")],
)
def test_what_is_not_known_over_arrays_is_left_to_tfma(metric, more):
    summed = computations(f'class_name: "{metric}"', more)
    assert summed
    assert all_sums(summed) is None


def test_a_correlation_over_batches_and_weights():
    sums = sums_of('class_name: "SquaredPearsonCorrelation"')
    random = np.random.default_rng(1)
    x, noise = random.normal(5, 2, 60), random.normal(size=60)
    y = 3 * x + 4 * noise
    correlation = np.corrcoef(x, y)[0, 1]
    assert output(sums, (x[:20], y[:20]), (x[20:], y[20:])) == pytest.approx(correlation**2)
    assert np.isnan(only(sums.output(sums.add(rows([1.0, 1.0], [2.0, 3.0])))))
