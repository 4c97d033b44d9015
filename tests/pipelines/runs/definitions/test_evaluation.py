import pytest
from tensorflow_model_analysis.metrics import metric_specs, metric_types

from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.metrics.batched_metrics import make_sums
from pipelines.config.evaluator import ThresholdConfig
from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.runs.definitions.evaluation import (
    build_eval_config,
    check_evaluator_config,
    check_problem_is_known,
    default_checks,
    default_metrics,
    merge_thresholds,
    problem_type_of_metrics,
    resolve_metrics,
)


def config(*settings):
    return load_config(data="a.csv", label="y", settings=settings)


def test_the_default_checks_are_on_and_can_be_set_and_switched_off():
    def checks(*settings):
        return default_checks(config(*settings).evaluator, "binary", "regression")

    assert checks() == DefaultChecks("binary", "regression", 0.95, 0.05)
    given = checks("evaluator.confidence=0.9", "evaluator.tolerance=0", "evaluator.min_skill_kept=0.25")
    assert given == DefaultChecks("binary", "regression", 0.9, 0.0, None, 0.25)
    off = "evaluator.default_checks=false"
    assert checks(off) is None
    with pytest.raises(BadInputError, match=r"leaves nothing that a model has to pass"):
        check_evaluator_config(config(off), ["a"])
    threshold = 'evaluator.thresholds=[{metric = "auc", lower = 0.6}]'
    check_evaluator_config(config(off, threshold), ["a"])
    for setting in ("confidence=0.5", "confidence=1", "tolerance=-0.1", "tolerance=1"):
        with pytest.raises(BadInputError, match=setting.partition("=")[0]):
            config(f"evaluator.{setting}")


@pytest.mark.parametrize(
    ("metrics", "problem_type"),
    [
        (("calibration", "example_count"), None),  # fit two or three
        (("mean_label", "f1_score"), "binary"),
        (("accuracy", "recall@late", "neg_root_mean_squared_error"), "regression"),
        (("no_such",), None),
    ],
)
def test_metrics_tell_the_problem_type_if_they_fit_one_only(metrics, problem_type):
    assert problem_type_of_metrics(metrics) == problem_type


def test_a_label_that_the_module_makes_needs_a_problem_type():
    made = ("module.path=my.module", "evaluator.label=y_xf")
    bound = "evaluator.thresholds=[{{metric = {metric!r}, lower = 0.6}}]".format
    for settings in (
        made[:1],  # the model says which label it has, perhaps the raw one
        (made[0], "evaluator.label=y"),
        (*made, "data.problem_type=binary"),
        (*made, 'evaluator.metrics=["example_count"]'),
        (*made, bound(metric="auc")),
    ):
        check_problem_is_known(config(*settings))
    for settings in (made, (*made, bound(metric="mean_prediction"))):
        with pytest.raises(BadInputError, match=r"'y_xf' is not the column 'y'.*data\.problem_type"):
            check_problem_is_known(config(*settings))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('evaluator.metrics=["acuracy"]', r"no metric 'acuracy'\. Did you mean 'binary_accuracy'"),
        ('evaluator.metrics=["neg_roc_auc"]', r"no metric 'neg_roc_auc'\. Did you mean 'auc'"),
        ('evaluator.slices=[["b"]]', r"evaluator\.slices: there is no column 'b'\. .* Columns: a"),
        (
            'evaluator.thresholds=[{metric = "auc", lower = 0.9, slice = {aa = "x"}}]',
            r"evaluator\.thresholds: there is no column 'aa'\. Did you mean 'a'\? Columns: a",
        ),
        (
            'evaluator.thresholds=[{metric = "mean_label", max_regression = 1}]',
            "max_regression = 1.0 does not apply to 'mean_label'",
        ),
        (
            'evaluator.thresholds=[{metric = "auc", lower = 0.9}, {metric = "roc_auc", upper = 0.8}]',
            r"2 entries for auc: lower = 0\.9 is above upper = 0\.8",
        ),
        (
            'evaluator.thresholds=[{metric = "recall", lower = 0.9, class = "lte"}]',
            r"'y' has no class 'lte'\. Did you mean 'late'\? Classes: late, on time",
        ),
        (
            'evaluator.thresholds=[{metric = "brier_score", upper = 0.9, class = "late"}]',
            r"'brier_score' has no value for one class, such as 'late'; these have: f1_score, recall",
        ),
        (
            "evaluator.thresholds.f1=0.5",
            r"thresholds are a list, .*--set 'evaluator\.thresholds=\[\{metric = \"f1\", lower = 0\.5\}\]'",
        ),
        (
            "evaluator.thresholds.log_loss=0.5",
            r"--set 'evaluator\.thresholds=\[\{metric = \"log_loss\", upper = 0\.5\}\]'",
        ),
        (
            "thresholds.f1=0.5",
            r"no such key\. Did you mean evaluator\.thresholds\? There, .*\[\{metric = \"f1\"",
        ),
        (
            "class_weights=auto",
            r"Did you mean trainer\.class_weights\? There, give \"balanced\", or a weight",
        ),
    ],
)
def test_names_and_bounds_are_checked(setting, message):
    def check(*settings):
        configured = config(*settings)
        check_evaluator_config(configured, ["a"])
        return resolve_metrics(configured, "binary", ("late", "on time"))

    check('evaluator.metrics=["auc"]', 'evaluator.slices=[[], ["a"]]')
    with pytest.raises(BadInputError, match=message):
        check(setting)


ENTRIES = [
    ThresholdConfig(metric="auc", lower=0.9999),
    ThresholdConfig(metric="recall", lower=0.3),
    ThresholdConfig(metric="auc", lower=0.6, upper=1.0, max_regression=0.02),
    ThresholdConfig(metric="auc", upper=0.99999, max_regression=0.01),
]


@pytest.mark.parametrize("entries", [ENTRIES, ENTRIES[::-1]])
def test_all_bounds_of_one_metric_hold(entries):
    merged = {bound.metric: bound for bound in merge_thresholds(tuple(entries))}
    assert merged == {
        "auc": ThresholdConfig(metric="auc", lower=0.9999, upper=0.99999, max_regression=0.01),
        "recall": ThresholdConfig(metric="recall", lower=0.3),
    }
    metrics = build_eval_config("y", ("auc",), tuple(entries), ()).metrics_specs[0].metrics
    (auc,) = (metric for metric in metrics if metric.class_name == "AUC")
    bounds = auc.per_slice_thresholds[0].threshold
    assert bounds.value_threshold.lower_bound.value == 0.9999
    assert bounds.value_threshold.upper_bound.value == 0.99999
    assert bounds.change_threshold.absolute.value == -0.01


@pytest.mark.parametrize("bound", ["lower = nan", "upper = inf", "max_regression = nan"])
def test_a_bound_is_a_finite_number(bound):
    with pytest.raises(BadInputError, match="finite number"):
        config(f'evaluator.thresholds=[{{metric = "auc", {bound}}}]')


def test_metrics_must_fit_the_problem():
    config = load_config(None, "a.csv", "kind", ('evaluator.metrics=["auc"]',))
    assert resolve_metrics(config, "binary") == (("auc",), ())
    with pytest.raises(
        BadInputError,
        match=r"'auc' is not a metric for a multi-class problem.*'kind'.*: auc@CLASS, auc_macro,",
    ):
        resolve_metrics(config, "multi-class")
    top_k = load_config(None, "a.csv", "kind", ('evaluator.metrics=["top_k_accuracy@3"]',))
    assert resolve_metrics(top_k, "multi-class", "abcd") == (("top_k_accuracy@3",), ())
    with pytest.raises(BadInputError, match=r"is 1 for every model, because 'kind' has only 3 classes"):
        resolve_metrics(top_k, "multi-class", "abc")
    module = load_config(None, "a.csv", "kind", ("module.path=m", 'evaluator.metrics=["auc"]'))
    assert resolve_metrics(module, "multi-class") == (("auc",), ())  # of another label than the column


def test_the_names_of_other_libraries_are_names_of_ours():
    metrics = ["accuracy", "AUC", "roc_auc", "F1Score", "f1", "neg_brier_score", "log_loss"]
    thresholds = """[
        {metric = "neg_log_loss", lower = -0.5, max_regression = 0.1},
        {metric = "Recall", class = "late", slice = {hour = 7}, lower = 0.6},
        {metric = "recall@late", slice = {hour = "7"}, lower = 0.7}]"""
    configured = config(f"evaluator.metrics={metrics}", f"evaluator.thresholds={thresholds}")
    names, bounds = resolve_metrics(configured, "binary", ("late", "on time"))
    assert names == ("binary_accuracy", "auc", "f1_score", "brier_score", "binary_crossentropy")
    assert bounds == (
        ThresholdConfig(metric="binary_crossentropy", upper=0.5, max_regression=0.1),
        ThresholdConfig(metric="recall@late", slice={"hour": "7"}, lower=0.7),
    )
    assert ThresholdConfig(**bounds[1].model_dump()) == bounds[1]


def test_the_eval_config_bounds_metrics_on_the_whole_data_set():
    thresholds = (
        ThresholdConfig(metric="auc", lower=0.6, max_regression=0.01),
        ThresholdConfig(metric="mean_squared_error", upper=3, max_regression=0.5),
    )
    proto = build_eval_config("tips_xf", ("auc", "recall"), thresholds, ((), ("city", "hour")))
    assert proto.model_specs[0].label_key == "tips_xf"
    assert [list(spec.feature_keys) for spec in proto.slicing_specs] == [[], ["city", "hour"]]
    auc, recall, error = proto.metrics_specs[0].metrics
    assert (auc.class_name, recall.class_name, error.class_name) == ("AUC", "Recall", "MeanSquaredError")
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


def test_the_eval_config_bounds_slices():
    thresholds = (
        ThresholdConfig(metric="recall@late", lower=0.6, slice={"city": "Oslo", "day": "Mon"}),
        ThresholdConfig(metric="recall@late", lower=0.7, slice={"shop": "007"}),
        ThresholdConfig(metric="auc", lower=0.5, slice={"shop": "1.50"}),
        ThresholdConfig(metric="auc", lower=0.8, slice={"city": "Oslo"}),
        ThresholdConfig(metric="auc", lower=0.9),
    )
    proto = build_eval_config("y", ("auc",), thresholds, (("city",),))
    slices = [(list(spec.feature_keys), dict(spec.feature_values)) for spec in proto.slicing_specs]
    # TFMA takes "007" for the number 7, which is not in the text of the column, and "1.50" for 1.5.
    assert slices == [([], {}), (["city"], {}), ([], {"city": "Oslo", "day": "Mon"}), (["shop"], {})]
    auc, recall = proto.metrics_specs[0].metrics
    bounds = [
        (dict(bound.slicing_specs[0].feature_values), bound.threshold.value_threshold.lower_bound.value)
        for metric in (auc, recall)
        for bound in metric.per_slice_thresholds
    ]
    expected = [
        ({"shop": "1.50"}, 0.5),
        ({"city": "Oslo"}, 0.8),
        ({}, 0.9),
        ({"city": "Oslo", "day": "Mon"}, 0.6),
        ({"shop": "007"}, 0.7),
    ]
    assert bounds == expected


@pytest.mark.parametrize("problem_type", ["binary", "multi-class", "regression"])
def test_all_default_metrics_tell_the_problem_type_and_are_summed_over_arrays(problem_type):
    """Any other metric makes the whole evaluation go through TFMA, example by example."""
    metrics = default_metrics(problem_type)
    assert problem_type_of_metrics(metrics) == problem_type
    eval_config = build_eval_config("y", metrics, (), (), "weight_of_row")
    assert eval_config.model_specs[0].example_weight_key == "weight_of_row"
    computations = metric_specs.to_computations(list(eval_config.metrics_specs), eval_config=eval_config)
    kept = [one for one in computations if isinstance(one, metric_types.MetricComputation)]
    unknown = [one for one in kept if make_sums(one) is None]
    assert kept
    assert [type(one.combiner).__name__ for one in unknown] == []
    weighted = {key.name: key.example_weighted for one in computations for key in one.keys}
    assert {name for name in metrics if weighted[name]} == {*metrics} - {"example_count"}
