"""`[evaluator]`, `[example_validator]` and `[gate]`: the checks of data and models."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from pipelines.config.data import Section
from pipelines.config.metrics import find_metrics, metric_of


class ThresholdConfig(Section):
    """`[[evaluator.thresholds]]`: bounds that a model must satisfy to be blessed.

    Several entries may name one metric; then all their bounds must hold.

    Attributes:
        metric: Name of a metric, such as `auc` or `root_mean_squared_error`.
        class_: Class whose `precision`, `recall`, `f1_score` or `auc` is bounded. Default: all classes.
        slice_: Values of one or more columns, such as `{city = "Oslo"}`: only rows that have them all count.
            Default: all rows.
        lower: Smallest value that is blessed.
        upper: Largest value that is blessed.
        max_regression: Largest loss of quality against the live model, in units of the metric. Default: the
            two are not compared by this threshold.
    """

    metric: str
    class_: str | None = Field(default=None, alias="class")
    slice_: dict[str, str] = Field(default_factory=dict, alias="slice")
    lower: float | None = Field(default=None, allow_inf_nan=False)
    upper: float | None = Field(default=None, allow_inf_nan=False)
    max_regression: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @field_validator("class_", "slice_", mode="before")
    @classmethod
    def _numbers_as_text(cls, value: Any) -> Any:
        """Returns whole numbers as text, since a class or a value may be a number."""
        if isinstance(value, Mapping):
            return {key: cls._numbers_as_text(item) for key, item in value.items()}
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

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
        tolerance: Largest loss of quality against the live model, in addition to the interval; a share of
            the advantage of the live model over the trivial model.
        min_skill_kept: Share of its skill that the live model must have kept since it was pushed. If it has
            lost more, the labels may be damaged, and nothing is pushed. The skill is the share of the way
            from the trivial model to a perfect model, in the metric. 0 turns the check off.
    """

    label: str | None = None
    metrics: tuple[str, ...] | None = None
    slices: tuple[tuple[str, ...], ...] | None = None
    thresholds: tuple[ThresholdConfig, ...] | None = None

    @field_validator("thresholds", mode="before")
    @classmethod
    def _is_a_list(cls, value: Any) -> Any:
        """Explains how to write what somebody tried as `evaluator.thresholds.auc=0.6`."""
        if not isinstance(value, Mapping):
            return value
        name, bound = next(iter(value.items()), ("auc", 0.6))
        losses = [metric_of(found).higher_is_better is False for found in find_metrics(name)]
        raise ValueError(
            "thresholds are a list, with an entry for each: --set 'evaluator.thresholds=[{metric = "
            f'"{name}", {"upper" if any(losses) else "lower"} = {bound}}}]\''
        )

    default_checks: bool = True
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    tolerance: float = Field(default=0.05, ge=0, lt=1)
    min_skill_kept: float = Field(default=0.7, ge=0, lt=1)


class ExampleValidatorConfig(Section):
    """`[example_validator]`: actions when the data do not fit the schema, or have drifted.

    The data are compared with those of the live model, column by column.

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

    Doubts are that the meaning of the new data has changed, that a column predicts the label on its own
    (target leakage), or that the model is worse than the live model in a slice. They need the default checks.

    Attributes:
        doubts: `hold` keeps the model and pushes nothing, until `approve` or `approve --reject` decides;
            `warn` pushes it with a warning.
    """

    doubts: Literal["hold", "warn"] = "hold"
