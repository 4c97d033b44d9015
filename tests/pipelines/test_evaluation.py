import pytest

from pipelines import evaluation
from pipelines.config import ThresholdConfig, load_config
from pipelines.errors import BadInputError
from pipelines.evaluation import (
    METRICS,
    build_eval_config,
    check_evaluator_config,
    default_metrics,
    default_thresholds,
    problem_type_of_metrics,
)
from pipelines.tabular.plan import LabelPlan


def config(*settings):
    return load_config(data="a.csv", label="y", settings=settings)


def test_defaults_ask_for_more_than_the_trivial_model():
    label = {"column": "y", "values": "text", "classes": ("a", "b")}
    (auc,) = default_thresholds(LabelPlan(problem_type="binary", **label))
    assert auc.metric == "auc"
    assert auc.lower > 0.5
    (accuracy,) = default_thresholds(
        LabelPlan(problem_type="multi-class", majority_share=0.7, **label)
    )
    assert (accuracy.metric, accuracy.lower) == ("sparse_categorical_accuracy", 0.7)
    (error,) = default_thresholds(
        LabelPlan(column="y", values="number", problem_type="regression", mean=50, stddev=4)
    )
    assert (error.metric, error.upper, error.max_regression) == (
        "root_mean_squared_error",
        4.0,
        0.2,  # 0.05 standard deviations
    )


@pytest.mark.parametrize("problem_type", ["binary", "multi-class", "regression"])
def test_default_metrics_are_known_and_tell_the_problem_type(problem_type):
    metrics = default_metrics(problem_type)
    assert set(metrics) <= set(METRICS)
    assert problem_type_of_metrics(metrics) == problem_type


def test_names_are_checked():
    check_evaluator_config(
        config('evaluator.metrics=["auc"]', 'evaluator.slices=[[], ["a"]]'), ["a"]
    )
    for setting, message in (
        ('evaluator.metrics=["AUC"]', r"no metric 'AUC'\. Did you mean"),
        ('evaluator.slices=[["b"]]', r"no column 'b'\. Columns: a"),
        (
            'evaluator.thresholds=[{metric = "mean_label", max_regression = 1}]',
            "max_regression = 1.0 has no meaning for 'mean_label'",
        ),
    ):
        with pytest.raises(BadInputError, match=message):
            check_evaluator_config(config(setting), ["a"])


def test_metrics_must_fit_the_problem():
    config = load_config(None, "a.csv", "kind", ('evaluator.metrics=["auc"]',))
    evaluation.check_metrics_fit(config, "binary")
    with pytest.raises(
        BadInputError, match=r"'auc' is no metric for a multi-class problem.*'kind'"
    ):
        evaluation.check_metrics_fit(config, "multi-class")


def test_eval_config():
    thresholds = (
        ThresholdConfig(metric="auc", lower=0.6, max_regression=0.01),
        ThresholdConfig(metric="mean_squared_error", upper=3, max_regression=0.5),
    )
    proto = build_eval_config("tips_xf", ("auc", "recall"), thresholds, ((), ("city", "hour")))
    assert proto.model_specs[0].label_key == "tips_xf"
    assert [list(spec.feature_keys) for spec in proto.slicing_specs] == [[], ["city", "hour"]]
    auc, recall, error = proto.metrics_specs[0].metrics
    assert (auc.class_name, recall.class_name, error.class_name) == (
        "AUC",
        "Recall",
        "MeanSquaredError",
    )
    auc_bounds, error_bounds = (metric.per_slice_thresholds[0].threshold for metric in (auc, error))
    for metric in (auc, error):  # on the whole data set, and not on each slice
        assert not metric.HasField("threshold")
        (bounded,) = metric.per_slice_thresholds
        assert [spec.ByteSize() for spec in bounded.slicing_specs] == [0]
    assert auc_bounds.value_threshold.lower_bound.value == 0.6
    assert not auc_bounds.value_threshold.HasField("upper_bound")
    assert auc_bounds.change_threshold.absolute.value == -0.01
    assert error_bounds.value_threshold.upper_bound.value == 3
    assert error_bounds.change_threshold.absolute.value == 0.5
    assert auc_bounds.change_threshold.direction != error_bounds.change_threshold.direction
    assert not recall.per_slice_thresholds
    assert not recall.HasField("threshold")
