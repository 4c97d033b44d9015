"""Each default check has a bad model that it stops; honest models that it stops are counted.

More data sets, and the pipeline's own model: gate_false_alarms.py in commit b7fd33cf.
"""

import math

import numpy as np
import pytest
from sklearn import metrics

from components.evaluator.gate.default_checks import DefaultChecks, ValueThen, run_checks
from components.evaluator.gate.labelled_predictions import LabelledPredictions, LabelTally
from components.evaluator.gate.verdict import load_verdict

NO_TALLY = LabelTally()


def check(problem_type, labels, candidate, baseline=None, tally=NO_TALLY, weights=None, **settings):
    name = None if baseline is None else "baseline"
    predictions = {"candidate": candidate} | ({name: baseline} if name else {})
    batch = LabelledPredictions.from_batch(labels, predictions, weights, problem_type)
    return run_checks(batch, "candidate", name, tally, DefaultChecks(**settings))


def failed(checked):
    return {(check.metric, check.against) for check in checked.checks if not check.passed}


def logistic(values):
    return 1 / (1 + np.exp(-values))


def binary(seed, size, signal=1.5):
    """Returns labels, and their true probabilities: no model is better."""
    draw = np.random.default_rng(seed)
    truth = logistic(signal * draw.normal(size=size) - 0.5)
    return (draw.uniform(size=size) < truth).astype(int), truth


def test_value_reference_bound_and_interval_of_each_check():
    labels, truth = binary(1, 400)
    baseline = logistic(np.random.default_rng(2).normal(size=400) + truth)
    checked = check("binary", labels, truth, baseline, confidence=0.9, tolerance=0.1)
    auc, loss, auc_again, loss_again = checked.checks
    prior = np.full(400, labels.mean())
    assert auc.value == auc_again.value == pytest.approx(metrics.roc_auc_score(labels, truth))
    assert loss.value == loss_again.value == pytest.approx(metrics.log_loss(labels, truth))
    assert (auc.reference, auc.bound) == (0.5, 0.5)
    assert loss.reference == loss.bound == pytest.approx(metrics.log_loss(labels, prior))
    of_baseline = metrics.roc_auc_score(labels, baseline), metrics.log_loss(labels, baseline)
    assert (auc_again.reference, loss_again.reference) == pytest.approx(of_baseline)
    # The drop is a tenth of the baseline's gain over the trivial model; the candidate's loss is worse.
    assert auc_again.bound == pytest.approx(of_baseline[0] - 0.1 * (of_baseline[0] - 0.5))
    assert loss_again.bound == loss_again.reference > loss.reference
    for one in checked.checks:
        assert one.difference == pytest.approx(one.value - one.reference)
        assert one.low < one.difference < one.high
        assert (one.confidence, one.num_examples, one.passed) == (0.9, 400, True)
    assert [c.against for c in checked.checks] == ["trivial"] * 2 + ["baseline"] * 2
    low, high = checked.intervals["auc"]
    assert (low, high) == pytest.approx((0.5 + auc.low, 0.5 + auc.high))
    assert checked.intervals["binary_crossentropy"][0] < loss.value
    wider = check("binary", labels, truth, confidence=0.99).checks[0]
    assert wider.high - wider.low > auc.high - auc.low


def test_an_auc_of_528_is_no_better_than_a_coin():
    # 500 of each class; 528 of 1000 pairs in order has a standard error of 0.018.
    draw = np.random.default_rng(4)
    labels = np.repeat([0, 1], 500)
    scores = logistic(draw.normal(size=1000) + 0.1 * labels)
    checked = check("binary", labels, scores)
    assert checked.checks[0].value == pytest.approx(0.528, abs=0.01)
    assert ("auc", "trivial") in failed(checked)
    message = checked.checks[0].message
    assert "is better by less than the interval than the trivial model's 0.5" in message
    assert message.endswith("examples (1000, 500 of the rarer class) to tell the model from a constant")


def test_a_good_auc_with_a_loss_worse_than_that_of_the_prior_is_stopped():
    # As of an overfitted model on 300 passengers: the order is right, the probabilities are not.
    labels, truth = binary(5, 300, signal=2.0)
    sure = logistic(9 * np.log(truth / (1 - truth)) + 3)
    checked = check("binary", labels, sure)
    auc, loss = checked.checks
    assert auc.passed
    assert auc.value > 0.8
    assert loss.value > loss.reference
    assert failed(checked) == {("binary_crossentropy", "trivial")}
    assert "binary_crossentropy" in loss.message
    assert "is not better than the trivial model's" in loss.message


def test_an_accuracy_far_below_a_constants_is_stopped():
    draw = np.random.default_rng(6)
    labels = (draw.uniform(size=2000) < 0.015).astype(int)  # a constant is right in 98.5 %
    positive = np.where(draw.uniform(size=2000) < 0.426, 0.4, 0.6)
    positive = np.where(labels == 1, 0.7, positive)
    assert failed(check("binary", labels, positive)) == {("binary_crossentropy", "trivial")}
    both = np.stack([1 - positive, positive], axis=1)
    checked = check("multi-class", labels, both)
    accuracy = checked.checks[0]
    assert accuracy.value < 0.5
    assert accuracy.reference == pytest.approx(1 - labels.mean())
    both = {"sparse_categorical_accuracy", "sparse_categorical_crossentropy"}
    assert failed(checked) == {(metric, "trivial") for metric in both}


def test_the_accuracy_of_a_constant_is_enough_where_the_loss_tells_the_model_from_it():
    # Of 4,000 examples 2 % are of class 1 and 2 % of class 2. The model knows which ones are likely
    # to be, but no rare class is ever more probable than class 0.
    labels = np.zeros(4000, int)
    labels[:80], labels[80:160] = 1, 2
    answers = np.tile([0.98, 0.01, 0.01], (4000, 1))
    answers[:400] = [0.6, 0.2, 0.2]
    accuracy, loss = check("multi-class", labels, answers).checks
    assert (accuracy.value, accuracy.difference) == (0.96, 0)
    assert loss.passed
    assert accuracy.passed
    assert "sparse_categorical_accuracy 0.96 is not worse than the trivial model's 0.96" in (accuracy.message)
    # The same without knowing which ones: only the loss fails.
    unknowing = np.tile([0.94, 0.03, 0.03], (4000, 1))
    assert failed(check("multi-class", labels, unknowing)) == {("sparse_categorical_crossentropy", "trivial")}


def test_a_model_of_shuffled_labels_is_worse_than_the_baseline():
    labels, truth = binary(7, 1000, signal=3.0)
    draw = np.random.default_rng(8)
    muddled = logistic(0.2 * np.log(truth / (1 - truth)) + 1.7 * draw.normal(size=1000))
    checked = check("binary", labels, muddled, truth)
    value, reference = checked.checks[2].value, checked.checks[2].reference
    assert value < 0.65 < 0.9 < reference
    assert {("auc", "baseline"), ("binary_crossentropy", "baseline")} <= failed(checked)
    assert f"auc {value:.5g} is worse than the baseline's {reference:.5g}" in (checked.checks[2].message)


def test_labels_that_are_damaged_for_both_models_are_seen_by_what_the_baseline_was():
    labels, truth = binary(20, 4000, signal=3.0)
    draw = np.random.default_rng(21)
    moved = draw.uniform(size=4000) < 0.6
    damaged = labels.copy()
    damaged[moved] = draw.permutation(labels[moved])
    learned = 0.4 * truth + 0.6 * labels.mean()  # predictions of a model trained on such labels
    assert not failed(check("binary", damaged, learned, truth))
    then = metrics.roc_auc_score(labels, truth)
    known = (ValueThen("auc", then, 0.5),)
    checked = check("binary", damaged, learned, truth, baseline_then=known)
    assert failed(checked) == {("auc", "baseline when pushed")}
    *_, last = checked.checks
    # The skill was (AUC - 0.5) / 0.5, of which 70 % are asked.
    assert last.bound == pytest.approx(0.5 + 0.7 * (then - 0.5))
    assert (last.value, last.reference) == (pytest.approx(0.66, abs=0.03), then)
    assert last.low < last.value < last.high < last.bound
    assert "has lost too much of its auc" in last.message
    settings = {"baseline_then": known, "min_skill_kept": 0.0}
    assert not failed(check("binary", damaged, learned, truth, **settings))
    # On a few examples the same fall may be chance.
    few = check("binary", damaged[:30], learned[:30], truth[:30], baseline_then=known)
    assert ("auc", "baseline when pushed") not in failed(few)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("then", "interval", "size", "is_doubted"),
    [
        (0.90, (0.895, 0.905), 20_000, True),  # a skill of 0.8 was, and 0.7 is: 12 % less, not 5 %
        (0.90, (0.895, 0.905), 200, False),  # may be chance now
        (0.90, (0.80, 0.95), 20_000, False),  # may have been chance then
        (0.90, (None, None), 20_000, False),  # not known
        (0.86, (0.859, 0.861), 20_000, False),  # within the tolerance
        (0.80, (0.795, 0.805), 20_000, False),  # it is better now
    ],
)
def test_a_baseline_that_lost_skill_beyond_chance_and_tolerance_is_doubted(then, interval, size, is_doubted):
    labels, truth = binary(30, size, signal=1.9)
    now = metrics.roc_auc_score(labels, truth)
    assert size < 1_000 or now == pytest.approx(0.85, abs=0.006)
    known = (ValueThen("auc", then, 0.5, interval),)
    checked = check("binary", labels, truth, truth, baseline_then=known)
    assert not failed(checked)
    assert bool(checked.doubts) == is_doubted
    lost = f"the live model's auc was 0.9 and is {now:.5g}, which is more"
    assert all(lost in doubt for doubt in checked.doubts)


@pytest.mark.more
def test_honest_new_data_are_doubted_less_often_than_the_interval_says():
    doubted = 0
    for seed in range(200):
        labels, truth = binary(100 + seed, 1_500)
        other_labels, other = binary(400 + seed, 1_500)
        before = check("binary", other_labels, other)
        known = tuple(
            ValueThen(one.metric, one.value, one.reference, before.intervals[one.metric])
            for one in before.checks
        )
        doubted += bool(check("binary", labels, truth, truth, baseline_then=known).doubts)
    assert doubted <= 4  # 2 %


def test_the_skill_of_a_regression_is_relative_to_the_spread_of_its_labels():
    draw = np.random.default_rng(22)
    signal = draw.normal(size=2000)
    # Ten times the spread, and ten times the error: the same skill. An error of the mean is 0.
    labels, said = 50 * signal, 50 * signal + 20 * draw.normal(size=2000)
    then = (ValueThen("root_mean_squared_error", 2.0, 5.0),)
    assert not failed(check("regression", labels, said, said, baseline_then=then))
    worse = 50 * signal + 45 * draw.normal(size=2000)
    found = check("regression", labels, said, worse, baseline_then=then)
    # The skill was 1 - 2 / 5; 70 % of it is an error of 0.58 times that of the mean.
    assert failed(found) == {("root_mean_squared_error", "baseline when pushed")}
    assert found.checks[-1].bound == pytest.approx(0.58 * np.std(labels))
    other = check("regression", labels, said, worse, baseline_then=(ValueThen("auc", 0.9, 0.5),))
    assert len(other.checks) == 4  # it was a model of another kind


def test_a_loss_or_an_accuracy_that_alone_is_worse_is_stopped_by_the_baseline():
    labels, truth = binary(9, 3000)
    shifted = logistic(np.log(truth / (1 - truth)) + 0.6)  # the same order
    assert failed(check("binary", labels, shifted, truth)) == {("binary_crossentropy", "baseline")}
    draw = np.random.default_rng(10)
    labels = draw.integers(3, size=3000)

    def answers(right_share, sure):
        said = np.where(draw.uniform(size=3000) < right_share, labels, (labels + draw.integers(1, 3)) % 3)
        return np.eye(3)[said] * sure + (1 - sure) / 3

    checked = check("multi-class", labels, answers(0.72, 0.6), answers(0.8, 0.95))
    assert failed(checked) == {("sparse_categorical_accuracy", "baseline")}


def test_a_regression_is_held_against_the_mean_and_the_baseline():
    draw = np.random.default_rng(11)
    signal = draw.normal(size=500)
    labels = 40 + 5 * signal + draw.normal(size=500)
    good = 40 + 5 * signal
    assert not failed(check("regression", labels, good, 40 + 4.9 * signal))
    noise = 40 + draw.normal(size=500)
    both = {("root_mean_squared_error", "trivial"), ("mean_squared_error", "trivial")}
    assert failed(check("regression", labels, noise)) == both
    worse = {("root_mean_squared_error", "baseline"), ("mean_squared_error", "baseline")}
    assert failed(check("regression", labels, 40 + 3 * signal, good)) == worse


@pytest.mark.parametrize("problem_type", ["binary", "multi-class", "regression"])
def test_an_example_of_weight_0_makes_no_check_more_certain(problem_type):
    labels, truth = binary(7, 330)
    answers = np.stack([1 - truth, truth], axis=1) if problem_type == "multi-class" else truth
    weights = np.r_[np.ones(30), np.zeros(300)]
    found = check(problem_type, labels, answers, answers[::-1], weights=weights)
    assert found == check(problem_type, labels[:30], answers[:30], answers[::-1][:30])
    nothing = check(problem_type, labels, answers, weights=np.zeros(330))
    assert nothing.not_checked == ("the default checks: there are no examples",)


def test_the_trivial_model_knows_the_labels_it_was_trained_on():
    labels = np.array([1.0, 2, 3, 4, 5, 6])
    trained = LabelTally.from_labels(np.array([10.0, 20]), np.ones(2), "regression")
    own, other = (
        check("regression", labels, labels + 0.1, tally=tally).checks[1].reference
        for tally in (NO_TALLY, trained)
    )
    assert own == pytest.approx(np.var(labels))
    assert other == pytest.approx(np.mean((labels - 15) ** 2))


def test_the_baseline_stops_no_model_for_chance_or_equality():
    labels, truth = binary(12, 50)
    checked = check("binary", labels, truth, truth)
    assert {c.difference for c in checked.checks[2:]} == {0.0}
    assert all(c.passed for c in checked.checks[2:])
    # Though both are worse than the trivial model on the new data.
    bad = 1 - truth
    assert {against for _, against in failed(check("binary", labels, bad, bad))} == {"trivial"}
    labels, truth = binary(13, 9)
    checked = check("binary", labels, truth, np.random.default_rng(1).permutation(truth))
    assert not {c for c in failed(checked) if c[1] == "baseline"}
    assert not checked.checks[0].passed
    one_class = check("binary", np.zeros(30, int), np.linspace(0.1, 0.2, 30))
    assert not one_class.checks[0].passed
    assert one_class.checks[0].message.startswith("auc is not a number")
    assert one_class.checks[0].low is None


def test_numbers_that_are_none_do_not_pass_and_are_worse_than_any():
    labels = np.arange(30.0)
    none, good = np.full(30, math.nan), labels + 0.5
    stopped = check("regression", labels, none, good)
    assert len(failed(stopped)) == 4
    assert stopped.checks[0].value is None
    assert not failed(check("regression", labels, good, none))


def test_what_cannot_be_checked_is_said_and_an_earlier_doubt_stays():
    labels = np.array([0, 1, 1, 0])
    unknown = check(None, labels, np.ones(4))
    assert unknown.checks == ()
    (reason,) = unknown.not_checked
    assert "against the trivial one and the baseline: its predictions have no known" in reason
    empty = check("binary", np.zeros(0), np.zeros(0))
    assert empty.not_checked == ("the default checks: there are no examples",)
    unknown = check(None, labels, np.ones(4), known_doubts=("a column tells the label",))
    assert unknown.doubts == ("a column tells the label",)
    assert check("binary", *binary(31, 400), known_doubts=("a leak",)).doubts == ("a leak",)
    # A baseline of another kind is no reason to push without the comparison.
    other = check("binary", labels, np.array([0.1, 0.9, 0.8, 0.2]), np.array([4.0, 5, 6, 7]))
    assert len(other.checks) == 2
    (failure,) = other.failures
    assert "cannot be compared with the live model" in failure


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confidence": 0.5}, "confidence=0.5"),
        ({"confidence": 1}, "confidence=1"),
        ({"tolerance": -0.1}, r"tolerance=-0\.1"),
        ({"tolerance": 1}, "tolerance=1"),
        ({"min_skill_kept": 1}, "min_skill_kept=1"),
        ({"problem_type": "ranking"}, "problem_type='ranking'"),
        ({"fallback": "ranking"}, "fallback='ranking'"),
        ({"doubts": "drop"}, r"'hold' or 'warn'\. Received: doubts='drop'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DefaultChecks(**settings)


def test_settings_and_checks_travel_as_json(tmp_path):
    then = (ValueThen("auc", 0.9, 0.5, (0.8, None)),)
    settings = DefaultChecks("binary", "regression", 0.9, 0.1, then, 0.4, "warn", ("a leak",))
    assert DefaultChecks.from_json(settings.to_json()) == settings
    assert DefaultChecks.from_json(None) is None
    made = check("binary", *binary(1, 40))
    made.write(str(tmp_path))
    assert load_verdict(str(tmp_path)) == made
    assert made.checks


def honest(seed, problem_type, num_eval):
    """Returns labels to evaluate on, and the predictions of the models of two months.

    A month of 1,000 examples gives each weight an error with a standard deviation of 0.07.
    """
    draw = np.random.default_rng(seed)
    weights = np.array([1.2, -0.8, 0.5, 0.0])
    x = draw.normal(size=(num_eval, 4))
    signal = x @ weights
    learned = [x @ (weights + 0.07 * draw.normal(size=4)) for _ in range(2)]
    if problem_type == "regression":
        noise = 1.5 * draw.normal(size=num_eval)
        return 100 + 20 * (signal + noise), *(100 + 20 * part for part in learned)
    if problem_type == "binary":
        labels = (draw.uniform(size=num_eval) < logistic(signal)).astype(int)
        return labels, *(logistic(part) for part in learned)
    labels = (logistic(signal)[:, np.newaxis] > draw.uniform(size=(num_eval, 2))).sum(axis=1)
    odds = [logistic(part) for part in learned]
    return labels, *(np.stack([(1 - p) ** 2, 2 * p * (1 - p), p**2], axis=1) for p in odds)


@pytest.mark.parametrize("num_eval", [300, 5_000])
@pytest.mark.parametrize("problem_type", ["binary", "multi-class", "regression"])
def test_twenty_honest_models_pass(problem_type, num_eval):
    alarms = [
        (seed, *name)
        for seed in range(20)
        for name in failed(check(problem_type, *honest(seed, problem_type, num_eval)))
    ]
    assert alarms == []
