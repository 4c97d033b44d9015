"""Metrics against scikit-learn's, on rows with weights, ties, and classes without rows or predictions."""

import functools
import json
import math

import numpy as np
import pytest
from sklearn import metrics as sklearn
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from components.errors import SettingError
from components.evaluator.metrics.batched_metrics import Rows, make_sums
from components.evaluator.metrics.sklearn_metrics import SklearnMetric, resolve_classes

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of scikit-learn, about missing classes

SIZE = 90
DRAWN = np.random.default_rng(7)
WEIGHTS = DRAWN.choice([0.5, 1.0, 3.0], SIZE)
# Class 2 has rows and is never predicted; class 3 is predicted and has no row; class 4 is neither.
CLASS_IDS = DRAWN.choice([0, 1, 2], SIZE, p=[0.5, 0.4, 0.1])
LIKELY = DRAWN.dirichlet([1, 1, 0.5, 0.9, 0.1], SIZE) + 0.1 * np.eye(5)[CLASS_IDS]
LIKELY[:, 2] = np.minimum(LIKELY[:, 2], 0.9 * LIKELY[:, :2].max(axis=1))
LIKELY[:, 4] = 0
PROBABILITIES = np.round(LIKELY / LIKELY.sum(axis=1, keepdims=True), 1)  # many are equal
POSITIVE = DRAWN.choice([0, 1], SIZE, p=[0.8, 0.2])
PROBABILITY = np.round(np.clip(0.4 * POSITIVE + DRAWN.random(SIZE) - 0.2, 0, 1), 1)
NUMBERS = 1000 + 3 * DRAWN.standard_normal(SIZE)
GUESSES = NUMBERS + DRAWN.standard_normal(SIZE)

CLASSES, BINARY, REGRESSION = (CLASS_IDS, PROBABILITIES), (POSITIVE, PROBABILITY), (NUMBERS, GUESSES)


def computed(name, rows, weights=WEIGHTS, class_id=None, threshold=0.5):
    """Returns a metric of rows in three parts, one of them empty, after comparing it with TFMA's own path."""
    metric = config_pb2.MetricConfig(
        class_name="SklearnMetric",
        module=SklearnMetric.__module__,
        config=json.dumps({"name": name, "class_id": class_id, "threshold": threshold}),
    )
    weight = "" if weights is None else "weight"
    config = config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(example_weight_key=weight)],
        metrics_specs=[config_pb2.MetricsSpec(metrics=[metric])],
    )
    summed, derived = metric_specs.to_computations(list(config.metrics_specs), eval_config=config)
    labels, predictions = rows

    def rows_of(part):
        taken = None if weights is None else weights[part]
        return Rows(labels[part], {"": predictions[part].astype(np.float32)}, taken)

    sums = make_sums(summed)
    parts = [sums.add(rows_of(part)) for part in (slice(0, 40), slice(40, 40), slice(40, None))]
    (value,) = derived.result(sums.output(functools.reduce(sums.merge, parts))).values()
    combiner = summed.combiner
    accumulators = [combiner.create_accumulator() for _ in range(3)]
    for i, (label, prediction) in enumerate(zip(*rows, strict=True)):
        inputs = {"labels": np.array([label]), "predictions": np.atleast_1d(prediction)}
        if weights is not None:
            inputs["example_weights"] = weights[i : i + 1]
        extracts = metric_types.StandardMetricInputs(inputs)
        accumulators[i // 40] = combiner.add_input(accumulators[i // 40], extracts)
    output = combiner.extract_output(combiner.merge_accumulators(accumulators))
    assert derived.result(output) == pytest.approx({derived.keys[0]: value}, rel=1e-4, nan_ok=True)
    return value


def of_chosen(function, **settings):
    def score(labels, predictions, weights):
        chosen = predictions > 0.5 if predictions.ndim == 1 else predictions.argmax(axis=1)
        return function(labels, chosen, sample_weight=weights, **settings)

    return score


def of_values(function, **settings):
    return lambda labels, values, weights: function(labels, values, sample_weight=weights, **settings)


def area(labels, scores, weights, class_id):
    return sklearn.roc_auc_score(labels == class_id, scores[:, class_id], sample_weight=weights)


def mean_area(labels, scores, weights, is_weighted):
    classes = [0, 1, 2]  # those with rows; scikit-learn's own average needs rows of all classes
    shares = [weights[labels == ident].sum() for ident in classes] if is_weighted else None
    return np.average([area(labels, scores, weights, ident) for ident in classes], weights=shares)


def average(function, kind):
    return of_chosen(function, average=kind)


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        *(
            (f"{name}_{kind}", CLASSES, average(function, kind))
            for name, function in (
                ("precision", sklearn.precision_score),
                ("recall", sklearn.recall_score),
                ("f1", sklearn.f1_score),
            )
            for kind in ("macro", "weighted")
        ),
        *(
            (name, rows, of_chosen(function))
            for name, function in (
                ("balanced_accuracy", sklearn.balanced_accuracy_score),
                ("matthews_correlation", sklearn.matthews_corrcoef),
                ("cohen_kappa", sklearn.cohen_kappa_score),
            )
            for rows in (CLASSES, BINARY)
        ),
        ("f1_macro", BINARY, average(sklearn.f1_score, "macro")),
        ("specificity", BINARY, of_chosen(sklearn.recall_score, pos_label=0)),
        ("top_k_accuracy@2", CLASSES, of_values(sklearn.top_k_accuracy_score, k=2, labels=range(5))),
        ("top_k_accuracy@3", CLASSES, of_values(sklearn.top_k_accuracy_score, k=3, labels=range(5))),
        ("auc_macro", CLASSES, functools.partial(mean_area, is_weighted=False)),
        ("auc_weighted", CLASSES, functools.partial(mean_area, is_weighted=True)),
        ("average_precision", BINARY, of_values(sklearn.average_precision_score)),
        ("brier_score", BINARY, of_values(sklearn.brier_score_loss)),
        ("quantile_loss@0.9", REGRESSION, of_values(sklearn.mean_pinball_loss, alpha=0.9)),
        ("mean_absolute_percentage_error", REGRESSION, of_values(sklearn.mean_absolute_percentage_error)),
        ("root_mean_squared_log_error", REGRESSION, of_values(sklearn.root_mean_squared_log_error)),
        ("r2", REGRESSION, of_values(sklearn.r2_score)),
    ],
)
def test_a_metric_equals_that_of_scikit_learn(name, rows, expected):
    value = computed(name, rows)
    assert value == pytest.approx(expected(*rows, WEIGHTS), rel=1e-4)
    assert value != pytest.approx(expected(*rows, np.ones(SIZE)), rel=1e-3)  # the weights matter
    assert computed(name, rows, None) == pytest.approx(expected(*rows, np.ones(SIZE)), rel=1e-4)


@pytest.mark.parametrize("class_id", range(5))
def test_a_metric_of_one_class_equals_that_of_scikit_learn(class_id):
    chosen = PROBABILITIES.argmax(axis=1)
    expected = sklearn.precision_recall_fscore_support(
        CLASS_IDS, chosen, labels=[class_id], sample_weight=WEIGHTS, zero_division=np.nan
    )
    values = [computed(f"{one}@x", CLASSES, class_id=class_id) for one in ("precision", "recall", "f1_score")]
    assert values == pytest.approx([float(part[0]) for part in expected[:3]], nan_ok=True)
    auc = math.nan if class_id > 2 else area(*CLASSES, WEIGHTS, class_id)
    assert computed("auc@x", CLASSES, class_id=class_id) == pytest.approx(auc, nan_ok=True)


@pytest.mark.parametrize("class_id", [0, 1])
def test_a_metric_of_either_of_two_classes(class_id):
    of_class = {"pos_label": class_id, "sample_weight": WEIGHTS}
    expected = [sklearn.recall_score(POSITIVE, PROBABILITY > 0.5, **of_class)]
    expected += [sklearn.precision_score(POSITIVE, PROBABILITY > 0.5, **of_class)]
    expected += [sklearn.roc_auc_score(POSITIVE, PROBABILITY, sample_weight=WEIGHTS)]
    names = ("recall@x", "precision@x", "auc@x")
    assert [computed(name, BINARY, class_id=class_id) for name in names] == pytest.approx(expected)


def test_decisions_at_another_threshold():
    of_class = {"pos_label": 1, "sample_weight": WEIGHTS}
    expected = sklearn.recall_score(POSITIVE, PROBABILITY > 0.25, **of_class)
    assert expected > sklearn.recall_score(POSITIVE, PROBABILITY > 0.5, **of_class)
    assert computed("recall@x", BINARY, class_id=1, threshold=0.25) == pytest.approx(expected)


def test_probabilities_near_0_and_near_1_are_told_apart():
    """TFMA's AUC puts all probabilities of a rare class into the first of its 10,000 intervals."""
    labels = np.array([1, 0, 0, 1, 1, 1, 0, 1])
    small = np.array([3e-6, 1e-6, 2e-6, 1.5e-6])
    predictions = np.concatenate([small, 1 - np.array([1e-6, 2e-6, 3e-6, 4e-6])])
    expected = sklearn.roc_auc_score(labels, predictions)
    assert computed("auc@x", (labels, predictions), None, 1) == pytest.approx(expected)


def test_the_median_counts_a_row_as_often_as_it_weighs():
    """scikit-learn takes the lower of two numbers in the middle if there are weights, before version 1.7."""
    errors = np.abs(NUMBERS - GUESSES)
    median = computed("median_absolute_error", REGRESSION)
    assert median == pytest.approx(np.median(np.repeat(errors, (2 * WEIGHTS).astype(int))), rel=1e-4)
    assert computed("median_absolute_error", REGRESSION, None) == pytest.approx(np.median(errors), rel=1e-4)
    assert computed("median_absolute_error", (np.array([1.0, 2, 3, 40]), np.zeros(4)), None) == 2.5


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("r2", ([5.0, 5.0], [4.0, 6.0]), 0),
        ("r2", ([5.0, 5.0], [5.0, 5.0]), 1),
        ("root_mean_squared_log_error", ([1.0, 2.0], [-1.5, 2.0]), math.nan),  # scikit-learn raises
        ("mean_absolute_percentage_error", ([1.0, 2.0], [math.nan, 2.0]), math.nan),
        ("matthews_correlation", ([0, 1], [0.1, 0.2]), 0),
        ("average_precision", ([0, 0], [0.1, 0.2]), math.nan),
        ("auc_macro", ([0, 0], [[0.5, 0.5], [0.2, 0.8]]), math.nan),
        # A prediction that is not a number is wrong, and is of no class.
        ("f1_macro", ([0, 1], [[0.9, 0.1], [math.nan, 0.9]]), 0.5),
        ("top_k_accuracy@2", ([0, 1], [[0.9, 0.1], [math.nan, 0.9]]), 0.5),
    ],
)
def test_values_at_the_limits_of_a_definition(name, rows, expected):
    rows = tuple(map(np.array, rows))
    assert computed(name, rows, None) == pytest.approx(expected, nan_ok=True)
    assert math.isnan(computed(name, rows, np.zeros(2)))


def test_an_auc_needs_probabilities():
    with pytest.raises(ValueError, match=r"probabilities between 0 and 1\. Received: 1\.5"):
        computed("auc@x", (np.array([0, 1]), np.array([0.5, 1.5])), None, 1)


def test_an_unknown_metric_lists_the_known_ones():
    with pytest.raises(SettingError, match=r"there is no metric 'f1'\. Its metrics: f1_score, f1_macro, "):
        SklearnMetric("f1")


@pytest.mark.parametrize(("classes", "class_id"), [(("on time", "late"), 1), ((), 7)])
def test_names_of_classes_become_ids(classes, class_id):
    def config(name):
        metric = config_pb2.MetricConfig(class_name="SklearnMetric", config=json.dumps({"name": name}))
        return config_pb2.EvalConfig(metrics_specs=[config_pb2.MetricsSpec(metrics=[metric])])

    resolved = resolve_classes(config("recall@late" if classes else "recall@7"), classes)
    assert json.loads(resolved.metrics_specs[0].metrics[0].config)["class_id"] == class_id
    assert resolve_classes(config("top_k_accuracy@3"), classes) == config("top_k_accuracy@3")
    message = "no such class. Its classes: late, on time" if classes else "does not name its classes"
    with pytest.raises(SettingError, match=f"recall of 'lte': the model .*{message}"):
        resolve_classes(config("recall@lte"), classes)
