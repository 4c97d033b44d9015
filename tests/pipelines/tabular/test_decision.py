"""Decision thresholds: their choice on held-out rows, and the classes of a model that has one."""

import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf

import estimator_core
from pipelines.tabular.decision import choose_decision, deciding
from pipelines.tabular.held_out import HeldOut
from pipelines.tabular.plan import LabelPlan

LABEL = LabelPlan(column="y", problem_type="binary", values="text", classes=("no", "yes"))


def held_out(scores, labels):
    scores = np.asarray(scores, float)
    names = np.array([b"yes" if label else b"no" for label in labels], object)
    return HeldOut(names, np.stack([1 - scores, scores], axis=1), np.ones(len(scores)))


@pytest.mark.parametrize(
    ("decide", "threshold"),
    [
        # By hand: of the scores 0.1, 0.2, 0.3*, 0.35 and 0.8* those with a star are "yes". A threshold of
        # 0.25 has one false positive and finds both, one of 0.575 finds one without a false positive.
        ("accuracy", 0.575),  # one error each; this is nearer to 0.5
        ("f1", 0.25),  # 4/5 against 2/3
        ("balanced", 0.25),  # (1 + 2/3) / 2 against (1/2 + 1) / 2
        ({"recall": 0.5}, 0.575),
        ({"recall": 0.51}, 0.25),
        ({"precision": 0.66}, 0.25),
        ({"precision": 1}, 0.575),
        ({"cost": {"false_positive": 1, "false_negative": 1.1}}, 0.25),
        ({"cost": {"false_positive": 1.1, "false_negative": 1}}, 0.575),
        # All of them cost 0.3, none of them costs 2, and 0.25 costs 0.1.
        ({"cost": {"false_positive": 0.1, "false_negative": 1}}, 0.25),
        ({"cost": {"false_positive": 5, "false_negative": 1}}, 0.575),
    ],
)
def test_goals_by_hand(decide, threshold):
    decision = choose_decision(decide, LABEL, held_out([0.1, 0.2, 0.3, 0.35, 0.8], [0, 0, 1, 0, 1]))
    assert decision.threshold == pytest.approx(threshold)
    assert (decision.positive, decision.held_out_rows, decision.held_out_positives) == ("yes", 5, 2)
    reached = (1, pytest.approx(2 / 3)) if threshold == 0.25 else (0.5, 1)
    assert (decision.recall, decision.precision) == reached
    assert decision.problem == ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("decide", ["accuracy", "f1", "balanced", {"recall": 0.8}, {"precision": 0.4}])
def test_no_threshold_is_better_by_scikit_learn(decide):
    """Scores with many ties, of which 7 % are positive."""
    draw = np.random.default_rng(2)
    labels = draw.random(700) < 0.07
    scores = np.round(np.clip(0.2 * labels + draw.beta(1, 6, 700), 0, 1), 2)
    decision = choose_decision(decide, LABEL, held_out(scores, labels))

    def quality(threshold):
        taken = scores > threshold
        recall = sklearn.metrics.recall_score(labels, taken)
        precision = sklearn.metrics.precision_score(labels, taken, zero_division=0)
        if decide == {"recall": 0.8}:
            return precision if recall >= 0.8 else 0
        if decide == {"precision": 0.4}:
            return recall if precision >= 0.4 else 0
        names = {"accuracy": "accuracy_score", "f1": "f1_score", "balanced": "balanced_accuracy_score"}
        return getattr(sklearn.metrics, names[decide])(labels, taken)

    best = max(map(quality, np.unique(scores)[:-1]))
    assert quality(decision.threshold) == pytest.approx(best)
    assert decision.recall == pytest.approx(sklearn.metrics.recall_score(labels, scores > decision.threshold))


@pytest.mark.parametrize(
    ("decide", "scores", "labels", "threshold", "problem"),
    [
        # A score of 0 is never above a threshold; the other "yes" is found from 0.1 on.
        ({"recall": 1}, [0, 0.2, 0.4], [1, 1, 0], 0.1, "no threshold reaches a recall of 1 there"),
        ({"precision": 0.9}, [0.2, 0.4], [1, 0], 0.1, "no threshold reaches a precision of 0.9 there"),
        ("f1", [0.2, 0.4], [0, 0], 0.5, "with one class there is nothing to choose from"),
        ("f1", [0.2, 0.4], [1, 1], 0.5, "with one class there is nothing to choose from"),
    ],
)
def test_a_goal_that_is_out_of_reach_is_named(decide, scores, labels, threshold, problem):
    decision = choose_decision(decide, LABEL, held_out(scores, labels))
    assert decision.threshold == pytest.approx(threshold)
    assert decision.problem == problem
    assert decision.describe().endswith(problem)


def test_a_threshold_above_all_rows_has_no_precision():
    decision = choose_decision("accuracy", LABEL, held_out([0.2, 0.4, 0.6], [1, 0, 0]))
    assert decision.threshold == pytest.approx(0.8)  # between the highest score and 1
    assert (decision.recall, decision.precision) == (0, None)
    assert decision.describe() == (
        "'yes' is predicted at p > 0.8 (accuracy), chosen on 3 held-out rows, 1 of them 'yes': recall 0"
    )


@pytest.mark.more
def test_a_model_predicts_the_class_by_its_threshold_everywhere(tmp_path):
    """The scores are known: those of a linear model of one number."""
    columns = [tf.feature_column.numeric_column("x")]
    classifier = estimator_core.LinearClassifier(columns, str(tmp_path / "a"), label_vocabulary=["no", "yes"])
    x = np.linspace(-3, 3, 64, dtype=np.float32)[:, np.newaxis]

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(({"x": x}, np.where(x > 1, b"yes", b"no"))).batch(16)

    classifier.train(lambda: input_fn().repeat(), max_steps=40)
    scores = np.array([row["logistic"][0] for row in classifier.predict(input_fn)])
    threshold = float(np.sort(scores)[50])  # that row itself is not above it
    estimator = deciding(classifier, threshold)
    expected = np.where(scores > threshold, b"yes", b"no")
    assert (expected == b"yes").sum() == 13 != (scores > 0.5).sum()
    predicted = list(estimator.predict(input_fn))
    assert [row["classes"][0] for row in predicted] == expected.tolist()
    assert [row["class_ids"][0] for row in predicted] == (expected == b"yes").tolist()
    metrics = estimator.evaluate(input_fn)
    assert metrics["auc"] == classifier.evaluate(input_fn)["auc"]
    assert not metrics.keys() & {"accuracy", "precision", "recall"}  # they are at 0.5
    receiver = estimator_core.export.build_parsing_serving_input_receiver_fn(
        {"x": tf.io.FixedLenFeature([1], tf.float32)}
    )
    model = tf.saved_model.load(estimator.export_saved_model(str(tmp_path / "export"), receiver))
    features = [tf.train.Feature(float_list=tf.train.FloatList(value=row)) for row in x]
    examples = tf.constant(
        [
            tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
            for feature in features
        ]
    )
    served = model.signatures["predict"](examples=examples)
    assert served["classes"].numpy()[:, 0].tolist() == expected.tolist()
    assert served["class_ids"].numpy()[:, 0].tolist() == (expected == b"yes").tolist()
    assert model.signatures["serving_default"](inputs=examples)["scores"].numpy()[:, 1] == pytest.approx(
        scores, rel=1e-5
    )
