"""The metrics that a configuration can name, by our names and those of TFMA, Keras and scikit-learn."""

import re
from dataclasses import dataclass

from components.evaluator.gate.check import OF_CLASS
from components.nearest import nearest_first
from pipelines.config.data import ProblemType
from pipelines.errors import BadInputError


@dataclass(frozen=True)
class Metric:
    """A metric that a configuration can name."""

    higher_is_better: bool | None  # True if higher values are better; None if neither direction is
    problem_types: tuple[ProblemType, ...]  # Types of problems whose labels and predictions it can compare
    class_name: str = ""  # Name of its class in TFMA or Keras; empty for a `SklearnMetric`
    aliases: tuple[str, ...] = ()
    example: str = ""  # Argument that the name needs, such as 3 in `top_k_accuracy@3`


_BINARY: tuple[ProblemType, ...] = ("binary",)
_SEVERAL: tuple[ProblemType, ...] = ("multi-class",)
_NUMBER: tuple[ProblemType, ...] = ("regression",)
_CLASSIFICATION = _BINARY + _SEVERAL
_TWO_OR_NUMBER = _BINARY + _NUMBER

METRICS = {
    "auc": Metric(True, _BINARY, "AUC", ("roc_auc",)),
    "auc_precision_recall": Metric(True, _BINARY, "AUCPrecisionRecall", ("pr_auc",)),
    "average_precision": Metric(True, _BINARY),
    "binary_accuracy": Metric(True, _BINARY, "BinaryAccuracy", ("accuracy",)),
    "precision": Metric(True, _BINARY, "Precision"),
    "recall": Metric(True, _BINARY, "Recall", ("sensitivity", "tpr")),
    "specificity": Metric(True, _BINARY, aliases=("tnr",)),
    "f1_score": Metric(True, _BINARY, "F1Score", ("f1",)),
    "binary_crossentropy": Metric(False, _BINARY, "BinaryCrossentropy", ("log_loss", "logloss")),
    "brier_score": Metric(False, _BINARY, aliases=("brier_score_loss",)),
    "sparse_categorical_accuracy": Metric(
        True, _SEVERAL, "SparseCategoricalAccuracy", ("accuracy", "categorical_accuracy")
    ),
    "sparse_categorical_crossentropy": Metric(
        False,
        _SEVERAL,
        "SparseCategoricalCrossentropy",
        ("log_loss", "logloss", "categorical_crossentropy"),
    ),
    "balanced_accuracy": Metric(True, _CLASSIFICATION),
    "f1_macro": Metric(True, _CLASSIFICATION, aliases=("macro_f1",)),
    "f1_weighted": Metric(True, _CLASSIFICATION, aliases=("weighted_f1",)),
    "precision_macro": Metric(True, _CLASSIFICATION),
    "precision_weighted": Metric(True, _CLASSIFICATION),
    "recall_macro": Metric(True, _CLASSIFICATION),
    "recall_weighted": Metric(True, _CLASSIFICATION),
    "auc_macro": Metric(True, _SEVERAL, aliases=("roc_auc_ovr",)),
    "auc_weighted": Metric(True, _SEVERAL, aliases=("roc_auc_ovr_weighted",)),
    "top_k_accuracy": Metric(
        True,
        _SEVERAL,
        aliases=("sparse_top_k_categorical_accuracy", "top_k_categorical_accuracy"),
        example="3",
    ),
    "matthews_correlation": Metric(
        True, _CLASSIFICATION, aliases=("matthews_corrcoef", "mcc", "matthews_correlation_coefficient")
    ),
    "cohen_kappa": Metric(True, _CLASSIFICATION),
    "calibration": Metric(None, _TWO_OR_NUMBER, "Calibration"),
    "mean_squared_error": Metric(False, _NUMBER, "MeanSquaredError", ("mse",)),
    "root_mean_squared_error": Metric(False, _NUMBER, "RootMeanSquaredError", ("rmse",)),
    "mean_absolute_error": Metric(False, _NUMBER, "MeanAbsoluteError", ("mae",)),
    "median_absolute_error": Metric(False, _NUMBER),
    "interval_coverage": Metric(None, _NUMBER),
    "interval_width": Metric(False, _NUMBER),
    "mean_absolute_percentage_error": Metric(False, _NUMBER, aliases=("mape",)),
    "root_mean_squared_log_error": Metric(False, _NUMBER, aliases=("rmsle",)),
    "quantile_loss": Metric(False, _NUMBER, aliases=("mean_pinball_loss", "pinball_loss"), example="0.9"),
    "r2": Metric(True, _NUMBER),
    "squared_pearson_correlation": Metric(True, _NUMBER, "SquaredPearsonCorrelation"),
    "mean_label": Metric(None, _TWO_OR_NUMBER, "MeanLabel"),
    "mean_prediction": Metric(None, _TWO_OR_NUMBER, "MeanPrediction"),
    "example_count": Metric(None, (*_CLASSIFICATION, *_NUMBER), "ExampleCount"),
}


def metric_of(name: str) -> Metric:
    """Returns the metric of one of our names, such as `recall@late`."""
    return METRICS[name.partition("@")[0]]


def fits(name: str, problem_type: ProblemType | None) -> bool:
    """Returns True if a metric can be computed for a problem, or if the problem's type is not known."""
    base, at, _ = name.partition("@")
    types = _CLASSIFICATION if at and base in OF_CLASS else METRICS[base].problem_types
    return problem_type is None or problem_type in types


def is_negated(name: str) -> bool:
    """Returns True for a name such as `neg_log_loss`, which scikit-learn gives to the negative of a loss."""
    return name.lower().startswith("neg_")


def find_metrics(name: str) -> list[str]:
    """Returns our names for a metric; several if the type of the problem decides."""
    base, at, argument = name.partition("@")
    return [
        ours + at + argument
        for ours, metric in METRICS.items()
        if _plain(base) in map(_plain, (ours, *metric.aliases))
        and not (is_negated(name) and metric.higher_is_better is not False)
        and (ours in OF_CLASS or metric.example or not at)
    ]


def resolve_metric(
    name: str, problem_type: ProblemType | None, where: str, why: str = "", must_fit: bool = True
) -> str:
    """Returns our name for a metric.

    where: Setting that names the metric.
    why: Reason for the type of the problem, for the error.
    must_fit: False if the type of the problem only decides between metrics of the same name.
    """
    if name.partition("@")[0] == "MeanAbsolutePercentageError":
        raise BadInputError(
            f"{where}: Keras gives {name!r} in percent. Use 'mean_absolute_percentage_error', which is a "
            "share as in scikit-learn: 0.1 is 10 %."
        )
    found = find_metrics(name)
    fitting = [ours for ours in found if fits(ours, problem_type)]
    fitting = fitting if fitting or must_fit else found
    if len(fitting) > 1:
        raise BadInputError(
            f"{where}: {name!r} is {' or '.join(map(repr, fitting))}. Use one of these names, or set "
            "data.problem_type."
        )
    if not fitting:
        nearest = nearest_metrics(name, problem_type)
        problem = f"there is no metric {name!r}. Did you mean {nearest[0]!r}?"
        if found:
            problem = f"{name!r} is not a metric for a {problem_type} problem{why}."
        of_problem = f" for {problem_type} problems" if problem_type else ""
        raise BadInputError(f"{where}: {problem} Metrics{of_problem}: {', '.join(nearest)}.")
    return _checked_argument(fitting[0], where)


def nearest_metrics(name: str, problem_type: ProblemType | None) -> list[str]:
    """Returns the metrics that fit a problem as they are written, the most similar first."""
    written: dict[str, str] = {}
    for ours, metric in METRICS.items():
        forms = [f"{ours}@{metric.example}"] if metric.example else [ours, f"{ours}@CLASS"]
        fitting = [form for form in forms if fits(form, problem_type)]
        written |= dict.fromkeys((ours, *metric.aliases) if fitting else (), *fitting[:1])
    nearest = nearest_first(name.partition("@")[0].lower(), written)
    return list(dict.fromkeys(written[choice] for choice in nearest))


def _checked_argument(name: str, where: str) -> str:
    base, _, argument = name.partition("@")
    example = METRICS[base].example
    if not example:
        return name
    pattern, needed = r"[1-9]\d{0,3}", "a number of classes"
    if "." in example:
        pattern, needed = r"0?\.\d*[1-9]\d*", "a share between 0 and 1"
    if not re.fullmatch(pattern, argument):
        raise BadInputError(f"{where}: {name!r} needs {needed} after an @, such as {base}@{example}.")
    return f"{base}@{float(argument):g}"


def _plain(name: str) -> str:
    """Returns a name without differences between the libraries, such as those of `F1Score` and `f1`."""
    return re.sub("[^a-z0-9]", "", name.lower().removeprefix("neg_")).removesuffix("score")
