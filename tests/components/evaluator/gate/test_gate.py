"""The default checks through the executor: the examples and models they take, and their verdict."""

import apache_beam as beam
import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
import tensorflow as tf

from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.gate.gate import Gate, read_checks, write_checks
from components.evaluator.metrics.extraction import Batch
from components.evaluator.report_details.details import load_details
from tests.components.evaluator.conftest import FLOAT, STRING, eval_config, save_serving_model, served


def rows(seed, count, positive=0.5):
    draw = np.random.default_rng(seed)
    made = []
    for index in range(count):
        label = int(draw.uniform() < positive)
        good, other = (float(np.clip(0.4 * label + draw.uniform(0.1, 0.5), 0, 1)) for _ in "ab")
        weight = 1.0 + index % 3
        made.append({"label": label, "good": good, "flat": 0.45 + other / 10, "weight": weight})
    return made


def weighted_area(data):
    """Returns labels, weights, and the area under the curve of the good scores."""
    labels, scores, weights = (np.array([row[name] for row in data]) for name in ("label", "good", "weight"))
    return labels, weights, sklearn.metrics.roc_auc_score(labels, scores, sample_weight=weights)


@pytest.fixture
def make_scorer(make_model):
    """Returns a function that makes a model whose probability is a column."""

    def make(column, **kwargs):
        weighted = {"weight": FLOAT} if "derive" in kwargs else {}
        return make_model(
            {"label": tf.io.FixedLenFeature([], tf.int64), column: FLOAT, **weighted},
            predict=lambda f: {kwargs.get("key", "logistic"): f[column][:, tf.newaxis]},
            label=lambda f: f["label"],
            name=column,
            derive=kwargs.get("derive", lambda f: {}),
        )

    return make


AUC = 'model_specs { %s } metrics_specs { metrics { class_name: "AUC" } }'


TRIPLED = {"derive": lambda f: {"tripled": 3 * f["weight"]}}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("key", "model"), [("weight", {}), ("tripled", TRIPLED)])
def test_the_prior_is_that_of_the_weighted_training_rows(make_examples, make_scorer, evaluate, key, model):
    """The weight is a raw feature, or a feature that the evaluation model derives."""
    evaluated, trained = rows(1, 200), rows(2, 300, positive=0.2)
    config = eval_config(AUC % f'example_weight_key: "{key}"')
    examples = make_examples(evaluated, trained)
    evaluation = evaluate(examples, make_scorer("good", **model), config, checks=DefaultChecks())
    verdict = evaluation.verdict
    auc, loss = verdict.checks
    labels, weights, area = weighted_area(evaluated)
    assert auc.value == pytest.approx(area, abs=1e-6)
    prior = np.average([row["label"] for row in trained], weights=[row["weight"] for row in trained])
    of_prior = sklearn.metrics.log_loss(labels, np.full(200, prior), sample_weight=weights)
    assert loss.reference == pytest.approx(of_prior)
    assert 0.15 < prior < 0.25  # that of the evaluated examples is 0.5, with a loss of 0.69
    assert loss.reference > 0.75
    assert verdict.blessed
    assert verdict.not_checked == ()
    assert verdict.intervals["auc"][0] < auc.value
    assert verdict.metrics["auc"] == pytest.approx(area, abs=1e-3)
    # By hand: the variance of a weighted mean of n differences, with n / (n - 1).
    scores = np.array([row["good"] for row in evaluated])
    differences = -np.log(np.where(labels == 1, scores, 1 - scores))
    differences += np.log(np.where(labels == 1, prior, 1 - prior))
    deviations = weights * (differences - np.average(differences, weights=weights))
    error = np.sqrt((deviations**2).sum() / weights.sum() ** 2 * 200 / 199)
    reach = scipy.stats.t.ppf(0.975, 199) * error
    assert (loss.high - loss.low) / 2 == pytest.approx(reach, rel=1e-3)
    if model:
        importance = load_details(evaluation.evaluation.uri)["importance"]
        assert importance["loss"] == pytest.approx(loss.value)


def test_the_baseline_is_compared_on_the_same_examples_and_a_worse_model_is_not_blessed(
    make_examples, make_scorer, evaluate
):
    evaluated = rows(3, 200)
    examples, good, flat = make_examples(evaluated), make_scorer("good"), make_scorer("flat")
    config = eval_config(AUC % "")
    stopped = evaluate(examples, flat, config, checks=DefaultChecks(), baseline_model=good)
    assert [(c.metric, c.against, c.passed) for c in stopped.verdict.checks] == [
        ("auc", "trivial", True),
        ("binary_crossentropy", "trivial", True),
        ("auc", "baseline", True),
        ("binary_crossentropy", "baseline", False),
    ]
    (failure,) = stopped.verdict.failures
    assert failure.startswith("binary_crossentropy 0.")
    assert "is worse than the baseline's 0." in failure
    assert stopped.blessing.get_int_custom_property("blessed") == 0
    assert stopped.blessing.get_string_custom_property("blessing_message") == failure
    other_way = evaluate(examples, good, config, checks=DefaultChecks(), baseline_model=flat)
    assert other_way.verdict.blessed
    # Without a training split, the trivial model knows the share of the evaluated labels.
    share = np.mean([row["label"] for row in evaluated])
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert other_way.verdict.checks[1].reference == pytest.approx(entropy)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("has_threshold", [True, False])
def test_a_custom_head_is_said_to_be_unchecked(make_examples, make_scorer, evaluate, has_threshold, caplog):
    bound = "threshold { value_threshold { lower_bound { value: 0.6 } } }" if has_threshold else ""
    config = eval_config(f'metrics_specs {{ metrics {{ class_name: "AUC" {bound} }} }}')
    model = make_scorer("good", key="my_score")
    verdict = evaluate(make_examples(rows(4, 60)), model, config, checks=DefaultChecks()).verdict
    (reason,) = verdict.not_checked
    assert "its predictions have no known problem type. Set data.problem_type" in reason
    assert verdict.checks == ()
    assert verdict.blessed is has_threshold
    assert f"Not checked: {reason}" in caplog.text
    if not has_threshold:
        assert "so the model cannot be judged. Not checked: " in verdict.failures[0]


@pytest.mark.more
def test_a_baseline_of_fewer_classes_is_compared_by_their_names(make_examples, make_model, evaluate):
    def make(classes, name):
        columns = [f"p_{kind}" for kind in classes]
        return make_model(
            {"kind": STRING, **dict.fromkeys(columns, FLOAT)},
            predict=lambda f: {
                "probabilities": tf.stack([f[column] for column in columns], axis=1),
                "all_classes": tf.tile([classes], [tf.shape(f["kind"])[0], 1]),
            },
            label=lambda f: f["kind"],
            name=name,
        )

    kinds = ["ant", "bee", "cat"]
    data = [
        {"kind": kind, **{f"p_{other}": 0.8 if other == kind else 0.1 for other in kinds}}
        for kind in kinds * 20
    ]
    # The baseline has never seen a bee, and its class ids are others.
    baseline, model = make(["cat", "ant"], "baseline"), make(kinds, "model")
    config = eval_config('metrics_specs { metrics { class_name: "SparseCategoricalAccuracy" } }')
    checks = DefaultChecks()
    verdict = evaluate(make_examples(data), model, config, checks=checks, baseline_model=baseline).verdict
    assert verdict.blessed
    assert verdict.checks[2].reference == pytest.approx(2 / 3)
    assert verdict.baseline_metrics["sparse_categorical_accuracy"] == pytest.approx(2 / 3)
    assert verdict.checks[2].value == 1


@pytest.mark.more
def test_a_model_that_is_no_estimator_is_checked_by_extracts_of_tfma(make_examples, make_artifact, evaluate):
    model = save_serving_model(make_artifact, serving_default=served("good"))
    evaluated = rows(5, 120)
    config = eval_config(AUC % 'label_key: "label" example_weight_key: "weight"')
    verdict = evaluate(
        make_examples(evaluated, rows(6, 20)), model, config, checks=DefaultChecks("binary")
    ).verdict
    assert verdict.blessed
    assert verdict.checks[0].value == pytest.approx(weighted_area(evaluated)[2], abs=1e-6)


def test_batches_come_together_and_an_empty_directory_has_no_checks(tmp_path):
    assert read_checks(str(tmp_path)).checks == ()
    gate = Gate(DefaultChecks("regression"), "m")
    parts = [np.arange(5.0), np.arange(5.0, 9.0)]
    with beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner") as p:
        batches = p | beam.Create([Batch(part, {"m": part + 0.5}, {}) for part in parts])
        write_checks(batches, None, gate, str(tmp_path))
    checked = read_checks(str(tmp_path))
    assert [check.num_examples for check in checked.checks] == [9, 9]
    assert checked.checks[1].value == pytest.approx(0.25)
    assert checked.checks[1].reference == pytest.approx(np.var(np.arange(9)))
