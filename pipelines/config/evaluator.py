"""`[evaluator]`, `[example_validator]` and `[gate]`: the checks of data and models."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from pipelines.config.data import ProblemType, Section


@dataclass(frozen=True)
class Metric:
    """A metric that a configuration can name."""

    class_name: str  # Name of its class in TFMA or Keras
    higher_is_better: bool | None  # True if higher values are better; None if neither direction is
    # Types of problems whose labels and predictions it can compare
    problem_types: tuple[ProblemType, ...]


METRICS = {
    "auc": Metric("AUC", True, ("binary",)),
    "auc_precision_recall": Metric("AUCPrecisionRecall", True, ("binary",)),
    "binary_accuracy": Metric("BinaryAccuracy", True, ("binary",)),
    "precision": Metric("Precision", True, ("binary",)),
    "recall": Metric("Recall", True, ("binary",)),
    "f1_score": Metric("F1Score", True, ("binary",)),
    "binary_crossentropy": Metric("BinaryCrossentropy", False, ("binary",)),
    "calibration": Metric("Calibration", None, ("binary", "regression")),
    "sparse_categorical_accuracy": Metric("SparseCategoricalAccuracy", True, ("multi-class",)),
    "sparse_categorical_crossentropy": Metric("SparseCategoricalCrossentropy", False, ("multi-class",)),
    "mean_squared_error": Metric("MeanSquaredError", False, ("regression",)),
    "root_mean_squared_error": Metric("RootMeanSquaredError", False, ("regression",)),
    "mean_absolute_error": Metric("MeanAbsoluteError", False, ("regression",)),
    "squared_pearson_correlation": Metric("SquaredPearsonCorrelation", True, ("regression",)),
    "mean_label": Metric("MeanLabel", None, ("binary", "regression")),
    "mean_prediction": Metric("MeanPrediction", None, ("binary", "regression")),
    "example_count": Metric("ExampleCount", None, ("binary", "multi-class", "regression")),
}


class ThresholdConfig(Section):
    """`[[evaluator.thresholds]]`: bounds that a model must satisfy to be blessed.

    Several entries may name one metric; then all their bounds must hold.

    Attributes:
        metric: Name of a metric, such as `auc` or `root_mean_squared_error`.
        lower: Smallest value that is blessed.
        upper: Largest value that is blessed.
        max_regression: Largest loss of quality against the model in production, in units of the metric.
            Default: the two are not compared by this threshold.
    """

    metric: str
    lower: float | None = Field(default=None, allow_inf_nan=False)
    upper: float | None = Field(default=None, allow_inf_nan=False)
    max_regression: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _some_bound(self) -> "ThresholdConfig":
        if self.lower is None and self.upper is None and self.max_regression is None:
            raise ValueError("give at least one of lower, upper and max_regression")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower = {self.lower} is above upper = {self.upper}")
        return self


class EvaluatorConfig(Section):
    """`[evaluator]`: metrics, slices and thresholds.

    Attributes:
        label: The transformed label, if `preprocessing_fn` computes it. Default: found automatically.
        metrics: Names of metrics. Default: chosen for the kind of problem.
        slices: Lists of columns; `[]` is the whole data set. Default: columns with few values.
        thresholds: Bounds in addition to the default checks. Default: none.
        default_checks: Requires that the model is better than the trivial model, and not worse than the
            live model, in its metric and its loss.
        confidence: Confidence level of the intervals of the default checks.
        tolerance: Largest loss of quality against the model in production, in addition to the interval; a
            share of the advantage of the model in production over the trivial model.
        min_skill_kept: Share of its skill that the model in production must have kept since it was pushed.
            If it has lost more, the labels may be damaged, and nothing is pushed. The skill is the share of
            the way from the trivial model to a perfect one, in the metric. 0 turns the check off.
    """

    label: str | None = None
    metrics: tuple[str, ...] | None = None
    slices: tuple[tuple[str, ...], ...] | None = None
    thresholds: tuple[ThresholdConfig, ...] | None = None
    default_checks: bool = True
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    tolerance: float = Field(default=0.05, ge=0, lt=1)
    min_skill_kept: float = Field(default=0.7, ge=0, lt=1)


class ExampleValidatorConfig(Section):
    """`[example_validator]`: actions when the data do not fit the schema, or have drifted.

    The data are compared with those of the model that serves, column by column.

    Attributes:
        on_anomalies: `warn` shows anomalies and continues, `fail` stops the run. Default: the run stops
            only at anomalies that make training meaningless, such as a column that is missing, empty or in
            another unit.
        l_infinity: Limit for text and missing values: the largest difference of a share.
        jensen_shannon: Limit for numbers: the Jensen-Shannon divergence of the distributions, in bits.
        breaking: Limit for both of them, beyond which training is meaningless.
        moving: Columns that always change, such as times and counters. Columns that are recognized as dates
            or ids need not be listed.
    """

    on_anomalies: Literal["warn", "fail", "fail_if_broken"] = "fail_if_broken"
    l_infinity: float = Field(default=0.1, ge=0, le=1)
    jensen_shannon: float = Field(default=0.02, ge=0, le=1)
    breaking: float = Field(default=0.3, ge=0, le=1)
    moving: tuple[str, ...] = ()


class GateConfig(Section):
    """`[gate]`: treatment of a model whose data are doubted.

    The doubts: the meaning of the new data has changed, a column predicts the label on its own (target
    leakage), or the model is worse than the live model in a part of the data. They are made with the
    default checks.

    Attributes:
        doubts: `hold` keeps the model and pushes nothing, until `approve` or `approve --reject` decides;
            `warn` pushes it with a warning.
    """

    doubts: Literal["hold", "warn"] = "hold"
