"""The plan of a generic model: what each column becomes, and how it is trained.

It travels as JSON in the components' `custom_config`.
"""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from pipelines.config.pipeline_config import ProblemType
from pipelines.data.formats.date_format import DateName
from pipelines.data.formats.number_format import DecimalMark

PLAN_KEY = "tabular_plan"
"""Where a plan lies in `custom_config`."""

LABEL_KEY = "label"
"""Name of the transformed label."""

GROUP_KEY = "held_out_group"
"""Name of the transformed group; no model looks at it."""

ModelName = Literal["boosted_trees", "wide_deep", "linear"]
"""The generic models."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabelPlan(_Part):
    """The label.

    Attributes:
      column: Raw column.
      problem_type: What is predicted.
      values: Kind of value in the raw column; decides how it is turned into a class name.
      classes: Class names in order; the last of two is the positive one. Empty for regression.
      majority_share: Share of the rows that have the most frequent class.
      mean: Of a regression label.
      stddev: Of a regression label.
      decimal: Its decimal mark, where the label is written otherwise than `float` reads it.
    """

    column: str
    problem_type: ProblemType
    values: Literal["number", "text"]
    classes: tuple[str, ...] = ()
    majority_share: float = 0.0
    mean: float = 0.0
    stddev: float = 1.0
    decimal: DecimalMark | None = None


class NumericFeature(_Part):
    """A column of numbers: z-score for the DNN, quantile bucket for the linear part.

    Attributes:
      column: Raw column.
      center: A number near the mean; sums of squares are taken around it, to be accurate.
      has_missing: Whether a feature of the DNN says which values are missing.
      decimal: Its decimal mark, where the cells are text that `float` does not read.
      date: How dates are written, whose days since 1970 are the numbers. None for numbers.
      newest: Of dates, the last day in the data: later ones count as it, since nothing was learned of them.
    """

    column: str
    center: float
    has_missing: bool
    decimal: DecimalMark | None = None
    date: DateName | None = None
    newest: float | None = None


class CategoricalFeature(_Part):
    """A column of categories: ids for the linear part, an embedding of them for the DNN.

    Attributes:
      column: Raw column.
      num_values: Number of different values.
      hash_buckets: Number of hash buckets, or None for a vocabulary.
      words: Of a boolean in words, in lower case: the true one and the false one.
      date: How dates are written, of which a part is the category. None for others.
      part: That part.
    """

    column: str
    num_values: int
    hash_buckets: int | None = None
    words: tuple[str, str] | None = None
    date: DateName | None = None
    part: Literal["month", "weekday", "hour"] | None = None


class TextFeature(_Part):
    """A column of free text: its words, and pairs of words, hashed.

    Attributes:
      column: Raw column.
      hash_buckets: Number of hash buckets.
      has_pairs: Whether pairs of words are features, too.
    """

    column: str
    hash_buckets: int
    has_pairs: bool = False


class TreesPlan(_Part):
    """How boosted trees are grown.

    Attributes:
      n_trees: Iterations at most.
      max_depth: Layers of a tree.
      learning_rate: Share of each tree that is added.
      min_node_weight: As for `BoostedTreesClassifier`.
      l2_regularization: As for `BoostedTreesClassifier`.
      batch_size: Examples that are read at a time.
      num_batches: At least as many as there are.
    """

    n_trees: int = 400
    max_depth: int = 6
    learning_rate: float = 0.1
    min_node_weight: float = 0.0
    l2_regularization: float = 0.0
    batch_size: int = 8_192
    num_batches: int = 1

    @property
    def steps_per_tree(self) -> int:
        """Training steps that a tree takes."""
        return self.num_batches * self.max_depth


class TrainingPlan(_Part):
    """How the estimator is trained.

    Attributes:
      model: Which one; "auto" trains all of them, and takes the best.
      reason: Why it is another one than the configuration asks for.
      trees: How boosted trees are grown.
      batch_size: Examples a step.
      train_steps: Optimizer steps.
      eval_steps: Batches of an evaluation; None means all.
      hidden_units: Layer sizes of the DNN.
      learning_rate: Of the DNN's optimizer.
      linear_learning_rate: Of the linear part's optimizer.
      dropout: Share of the DNN's units that are dropped.
      seed: `tf_random_seed`.
      early_stopping: Whether a part of the training rows is held out, to stop when the loss on them does
        not fall any more and to keep the checkpoint where it was lowest.
      one_held_out_in: Of how many training rows one is held out.
    """

    model: ModelName | Literal["auto"] = "wide_deep"
    reason: str = ""
    trees: TreesPlan = TreesPlan()
    batch_size: int
    train_steps: int
    eval_steps: int | None
    hidden_units: tuple[int, ...]
    learning_rate: float
    linear_learning_rate: float
    dropout: float
    seed: int
    early_stopping: bool = False
    one_held_out_in: int = 6

    def max_steps(self, model: ModelName) -> int:
        """Returns the step at which the training of a model ends at the latest."""
        if model == "boosted_trees":
            return self.trees.n_trees * self.trees.steps_per_tree
        return self.train_steps

    def describe(self) -> str:
        """Returns which model is trained, and how long at most, in words."""
        steps = f"{self.train_steps} steps of {self.batch_size}"
        trees = f"{self.trees.n_trees} trees"
        if self.model == "auto":
            return (
                f"model: the best of {', '.join(get_args(ModelName))} on held-out training rows "
                f"({trees}, {steps} at most)"
            )
        text = f"model: {self.model} ({trees if self.model == 'boosted_trees' else steps} at most)"
        return f"{text}: {self.reason}" if self.reason else text


class FeaturePlan(_Part):
    """The part of a plan that `preprocessing_fn` needs; other changes do not touch its results.

    Attributes:
      label: What is predicted.
      numeric: Columns used as numbers.
      categorical: Columns used as categories; a column may be in both.
      num_buckets: Number of quantile buckets of a numeric column; 0 where the rows are too few for a
        weight of each.
      text: Columns used as free text.
      group: Column whose values are not to be on both sides when training rows are held out.
    """

    label: LabelPlan
    numeric: tuple[NumericFeature, ...]
    categorical: tuple[CategoricalFeature, ...]
    num_buckets: int
    text: tuple[TextFeature, ...] = ()
    group: str | None = None

    @staticmethod
    def from_custom_config(custom_config: dict[str, Any]) -> "FeaturePlan":
        """Returns the plan that `feature_config` put there."""
        return FeaturePlan.model_validate(custom_config[PLAN_KEY])

    def feature_config(self) -> dict[str, Any]:
        """Returns this part of the plan as an entry of Transform's `custom_config`."""
        return {PLAN_KEY: self.model_dump(mode="json", include=set(FeaturePlan.model_fields))}


class TabularPlan(FeaturePlan):
    """The whole plan.

    Attributes:
      ignored: Reason by column that the model does not see.
      slices: Columns with few values, for the evaluation.
      training: How it is trained.
      text_columns: Columns that CsvExampleGen leaves as text though they look like numbers.
    """

    ignored: dict[str, str]
    slices: tuple[str, ...]
    training: TrainingPlan
    text_columns: tuple[str, ...] = ()

    @staticmethod
    def from_custom_config(custom_config: dict[str, Any]) -> "TabularPlan":
        """Returns the plan that `training_config` put there."""
        return TabularPlan.model_validate(custom_config[PLAN_KEY])

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns that the model reads, the label being the first."""
        numeric = (part.column for part in self.numeric)
        categorical = (part.column for part in self.categorical)
        text = (part.column for part in self.text)
        return tuple(dict.fromkeys((self.label.column, *numeric, *categorical, *text)))

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The raw columns that `preprocessing_fn` reads: those, and the group's."""
        return (*self.columns, *filter(None, [self.group]))

    def notes(self) -> list[str]:
        """Returns what a reader should know of the plan, one sentence each."""
        classes = f" with {len(self.label.classes)} classes" if self.label.classes else ""
        text = f" and {len(self.text)} columns of text" if self.text else ""
        return [
            f"{self.label.problem_type} problem: {self.label.column!r}{classes} from "
            f"{len(self.numeric)} numeric and {len(self.categorical)} categorical features{text}",
            self.training.describe(),
            *(
                f"column {column!r} is not used: {reason}"
                for column, reason in self.ignored.items()
            ),
        ]

    def training_config(self) -> dict[str, Any]:
        """Returns the plan as an entry of Trainer's `custom_config`."""
        return {PLAN_KEY: self.model_dump(mode="json")}
