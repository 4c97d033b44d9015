import numpy as np
import pytest

from components.evaluator.report_details.prediction_sums import (
    MAX_SAMPLE,
    NUM_BINS,
    PredictionSums,
    add_by_model,
    threshold_bin,
)


def sums(labels, predictions, kind, weights=None):
    labels = np.asarray(labels)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    return PredictionSums.from_batch(labels, np.asarray(predictions), weights, kind)


def test_probabilities_are_counted_by_label_and_weight():
    found = sums([1, 0, 1], [0.25, 0.25, 1.0], "binary", [2, 3, 5])
    negative, positive = found.by_class
    assert (negative[2500], negative.sum()) == (3, 3)
    assert (positive[2500], positive[NUM_BINS - 1], positive.sum()) == (2, 5, 7)
    assert found.num_examples == 3
    both_probabilities = sums([1], [[0.75, 0.25]], "binary")
    assert both_probabilities.by_class[1].argmax() == 2500


@pytest.mark.parametrize("threshold", [0.5, 0.12345, 0.1, 1e-6, 0.999_999])
def test_rows_above_a_threshold_are_counted_exactly(threshold):
    """Around a threshold, many rows are in the interval of the threshold itself."""
    near = threshold + np.arange(-3, 4) * 1e-7
    scores = np.clip(np.concatenate([near, np.linspace(0, 1, 41)]), 0, 1)
    labels = np.arange(len(scores)) % 2
    found = PredictionSums.from_batch(labels, scores, np.ones(len(scores)), "binary", threshold)
    above = [found.by_class[label, threshold_bin(threshold) :].sum() for label in (0, 1)]
    assert above == [((scores > threshold) & (labels == label)).sum() for label in (0, 1)]
    assert found.by_class.sum() == len(scores)


def test_classes_and_how_sure_the_model_is():
    answers = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.6, 0.4, 0.0]]
    found = sums([0, 1, 0], answers, "multi-class", [1, 2, 4])
    assert found.confusion == {(0, 0): 5.0, (1, 2): 2.0}
    # Probabilities 0.6 and 0.6 fall into interval 12 of 20, 0.7 into 14 (or 13: 0.7 * 20 is 14).
    predicted, right, weight = found.confidence
    assert predicted.sum() == pytest.approx(0.7 + 2 * 0.6 + 4 * 0.6)
    assert (right.sum(), weight.sum()) == (5, 7)


@pytest.mark.parametrize("kind", ["binary", "multi-class", "regression"])
def test_parts_add_up_to_the_whole(kind):
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, 300).astype(float if kind == "regression" else int)
    answers = draw.dirichlet((1, 1), 300) if kind == "multi-class" else draw.random(300)
    weights = draw.integers(1, 4, 300)
    whole = sums(labels, answers, kind, weights)
    parts = [
        {"m": sums(labels[part], answers[part], kind, weights[part])}
        for part in (slice(0, 100), slice(100, 101), slice(101, 300))
    ]
    added = add_by_model([*parts, {"m": PredictionSums()}])["m"]
    assert added.num_examples == whole.num_examples == 300
    assert added.squares == whole.squares == (0 if kind == "regression" else (weights**2).sum())
    if kind == "regression":
        assert sorted(map(tuple, added.sample[:, :2])) == sorted(map(tuple, whole.sample[:, :2]))
    elif kind == "binary":
        assert np.array_equal(added.by_class, whole.by_class)
    else:
        assert added.confusion == pytest.approx(whole.confusion)
        assert np.allclose(added.confidence, whole.confidence)


def test_a_sample_of_numbers_is_bounded_repeatable_and_from_all_parts():
    labels = np.arange(5_000.0)
    parts = [sums(labels[at : at + 1_000], labels[at : at + 1_000], "regression")
             for at in range(0, 5_000, 1_000)]  # fmt: skip
    (added,) = add_by_model({"m": part} for part in parts).values()
    assert len(added.sample) == MAX_SAMPLE
    fifths = np.bincount((added.sample[:, 0] // 1_000).astype(int), minlength=5)
    # Of each fifth 400 are expected, with a standard deviation of 15.5.
    assert fifths.min() > 320
    (again,) = add_by_model({"m": part} for part in parts).values()
    assert np.array_equal(again.sample, added.sample)


@pytest.mark.parametrize(
    ("labels", "predictions", "kind"),
    [
        ([1, 0], [0.5, 0.5], None),
        ([1, 2], [0.5, 0.5], "binary"),
        ([1, 0], [0.5, 1.5], "binary"),
        ([1, 0], [np.nan, 0.5], "regression"),
        (["a", "b"], [0.5, 0.5], "binary"),
        ([1, 0], [None, None], "binary"),
        ([1, 0], [0.5, 0.5], "multi-class"),
        ([[1, 0], [0, 1]], [0.5, 0.5], "binary"),
    ],
)
def test_what_is_none_of_the_problem_type_is_not_counted(labels, predictions, kind):
    assert sums(labels, predictions, kind).problem_type is None
