"""Plan of a generic model: the features of each column, and the settings of the training.

It is passed as JSON in the components' `custom_config`.
"""

import math
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from components.transform.packs_key import PACKS_KEY
from pipelines.config.pipeline_config import ProblemType
from pipelines.config.trainer import Decide, describe_goal
from pipelines.data.formats.cell_format import TextFormat
from pipelines.data.formats.date_format import DateName
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import counted

PLAN_KEY = "tabular_plan"
"""Key of the plan in `custom_config`."""

LABEL_KEY = "label"

GROUP_KEY = "held_out_group"
"""Name of the transformed group, which no model uses."""

WEIGHT_KEY = "weight_of_row"
"""Name of the transformed weight of a row, which training and evaluation use, but no served model."""

MAX_SEPARATE = 64
"""Largest number of columns of numbers and categories that are separate inputs, see `packs`."""

NUMBERS, CATEGORIES = "numbers", "categories"
"""Names of packs."""

MISSING_CATEGORY = "[missing]"
"""Value of a category whose cell is missing."""

ModelName = Literal["boosted_trees", "wide_deep", "linear"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabelPlan(_Part):
    column: str
    problem_type: ProblemType
    values: Literal["number", "text"]  # Type of the raw values; determines their conversion to class names
    # Class names in order; the last of two is the positive one. Empty for regression.
    classes: tuple[str, ...] = ()
    majority_share: float = 0.0  # Share of the most frequent class, by weight
    positive_share: float = 0.0  # Share of the rows that have the last of two
    mean: float = 0.0  # Mean of a regression label
    stddev: float = 1.0  # Standard deviation of a regression label
    number_format: NumberFormat | None = None  # Format of a label that `float` does not read


class WeightPlan(_Part):
    """Weight of a row: that of a column, times that of its class, times `scale`."""

    column: str | None = None
    number_format: NumberFormat | None = None  # Format of weights that `float` does not read
    classes: tuple[float, ...] = ()  # Weight of each class; empty weighs all the same
    scale: float = 1.0  # Factor that makes the mean weight 1, on which step sizes and leaf limits rely

    def describe(self, label: LabelPlan) -> str:
        """Returns the weights in words."""
        by_class = ", ".join(
            f"{name} {weight:.4g}" for name, weight in zip(label.classes, self.classes, strict=False)
        )
        of_classes = f"class ({by_class})" if by_class else ""
        of_column = f"column {self.column!r}" if self.column else ""
        return f"rows are weighted by {' times '.join(filter(None, [of_column, of_classes]))}"


class NumericFeature(_Part):
    """A column of numbers: z-score for the DNN, quantile bucket for the linear part."""

    column: str
    center: float  # A number near the mean; sums of squares are taken around it, to be accurate
    has_missing: bool  # Adds a feature to the DNN that marks missing values
    # Cells that have no such number or date and count as missing; the first of many.
    unreadable: tuple[str, ...] = ()
    number_format: NumberFormat | None = None  # Format of cells that `float` does not read
    date: DateName | None = None  # Format of dates, whose days since 1970 are the numbers. None for numbers.
    # Last day of dates in the data; later dates count as this day, which is the last one learned.
    newest: float | None = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """Format of the cells; columns of one kind and type are read together."""
        return (self.number_format, self.date)


class CategoricalFeature(_Part):
    """A column of categories: ids for the linear part, an embedding of them for the DNN."""

    column: str
    num_values: int
    hash_buckets: int | None = None
    words: tuple[str, str] | None = None  # Words of a boolean in lower case: the true one and the false one
    date: DateName | None = None  # Format of dates that have the category as a part. None for other columns.
    part: Literal["month", "weekday", "hour"] | None = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """Format of the cells; columns of one kind and type are read together."""
        return (self.words, self.date, self.part)


class TextFeature(_Part):
    """A column of free text: its words, and pairs of words, hashed."""

    column: str
    hash_buckets: int
    has_pairs: bool = False  # Adds pairs of words as features


class ListFeature(_Part):
    """A column of lists: a 1 for each part that a cell has, and a 0 for the others."""

    column: str
    separator: str  # Character between the parts
    parts: tuple[str, ...]


class TreesPlan(_Part):
    """Settings of boosted trees."""

    n_trees: int = 400  # Maximal number of iterations
    max_depth: int = 6  # Layers of a tree
    learning_rate: float = 0.1  # Share of each tree that is added
    min_node_examples: int = 1  # See `BoostedTreesClassifier`
    min_node_weight: float = 0.0  # See `BoostedTreesClassifier`
    l2_regularization: float = 0.0  # See `BoostedTreesClassifier`
    batch_size: int = 8_192  # Examples that are read at a time
    num_batches: int = 1  # Upper bound of the number of batches

    @property
    def steps_per_tree(self) -> int:
        return self.num_batches * self.max_depth


class TrainingPlan(_Part):
    model: ModelName | Literal["auto"] = "wide_deep"
    reason: str = ""  # Reason why it is not the model of the configuration
    trees: TreesPlan = TreesPlan()  # Settings of boosted trees
    batch_size: int  # Examples per step
    train_steps: int
    eval_steps: int | None  # Batches of an evaluation; None means all
    hidden_units: tuple[int, ...]  # Layer sizes of the DNN
    learning_rate: float  # Learning rate of the DNN's optimizer
    linear_learning_rate: float  # Learning rate of the linear part's optimizer
    dropout: float  # Share of the DNN's units that are dropped
    seed: int  # `tf_random_seed`
    # Holds out a part of the training rows, stops when the loss on them stops falling, and keeps
    # the checkpoint with the lowest loss.
    early_stopping: bool = False
    one_held_out_in: int = 6  # Number of training rows of which one is held out
    held_out_rows: int = 0  # Number of held-out rows, about; 0 without early stopping
    folds: int = 1  # Number of trainings of each model of "auto", which hold out other rows
    time_limit: float | None = None  # Seconds for the trainings of "auto"; None for no limit
    interval: float | None = None  # Share of the labels in the intervals of a regression; None without
    # Goal of the decision threshold of a binary classifier, or the threshold; None decides at 0.5.
    decide: Decide | None = None

    def max_steps(self, model: ModelName) -> int:
        """Returns the maximal number of steps of a model's training."""
        if model == "boosted_trees":
            return self.trees.n_trees * self.trees.steps_per_tree
        return self.train_steps

    def describe(self) -> str:
        """Returns a sentence with the model and the maximal length of its training."""
        steps = f"{counted(self.train_steps, 'step')} of {self.batch_size}"
        trees = counted(self.trees.n_trees, "tree")
        if self.model == "auto":
            on_folds = f" of {self.folds} folds" if self.folds > 1 else ""
            return (
                f"model: the best of {', '.join(get_args(ModelName))}, or an ensemble of them, on held-out "
                f"training rows{on_folds} ({trees}, {steps} at most)"
            )
        text = f"model: {self.model} ({trees if self.model == 'boosted_trees' else steps} at most)"
        return f"{text}: {self.reason}" if self.reason else text


class FeaturePlan(_Part):
    """Part of a plan that `preprocessing_fn` depends on; the other fields do not affect its results."""

    label: LabelPlan
    numeric: tuple[NumericFeature, ...]  # Columns used as numbers
    categorical: tuple[CategoricalFeature, ...]  # Columns used as categories; a column may be in both
    # Number of quantile buckets of a numeric column; 0 if the rows are too few to learn a weight for each.
    num_buckets: int
    text: tuple[TextFeature, ...] = ()  # Columns used as free text
    lists: tuple[ListFeature, ...] = ()  # Columns used as lists
    group: str | None = None  # Column each of whose values is either learned from or held out, but not both
    weight: WeightPlan | None = None  # None weighs all rows the same

    @staticmethod
    def from_custom_config(custom_config: dict[str, Any]) -> "FeaturePlan":
        return FeaturePlan.model_validate(custom_config[PLAN_KEY])

    @property
    def columns(self) -> tuple[str, ...]:
        """Raw columns that the model reads, the label first."""
        numeric = (part.column for part in self.numeric)
        categorical = (part.column for part in self.categorical)
        text = (part.column for part in self.text)
        lists = (part.column for part in self.lists)
        return tuple(dict.fromkeys((self.label.column, *numeric, *categorical, *text, *lists)))

    @property
    def packs(self) -> dict[str, tuple[str, ...]]:
        """Columns that Transform and the model read as matrices; empty unless there are many.

        Each column outside of a pack is a separate input. With a few hundred of them, it takes longer to
        make the graphs than to compute, and with thousands it takes minutes.
        """
        if len(self.numeric) + len(self.categorical) <= MAX_SEPARATE:
            return {}
        packs = {
            NUMBERS: tuple(part.column for part in self.numeric),
            CATEGORIES: tuple(part.column for part in self.categorical),
        }
        return {name: columns for name, columns in packs.items() if columns}

    @property
    def words(self) -> tuple[int, ...]:
        """Positions of the categorical columns whose categories are in the vocabulary."""
        parts = enumerate(self.categorical)
        return tuple(index for index, part in parts if part.hash_buckets is None)

    @property
    def has_word_matrix(self) -> bool:
        """True if the columns of `words` are one feature, since they are many."""
        return len(self.words) > MAX_SEPARATE

    def feature_config(self) -> dict[str, Any]:
        """Returns this part of the plan as an entry of Transform's `custom_config`."""
        plan = {PLAN_KEY: self.model_dump(mode="json", include=set(FeaturePlan.model_fields))}
        return {**plan, PACKS_KEY: self.packs} if self.packs else plan


class TabularPlan(FeaturePlan):
    """Complete plan of a generic model."""

    ignored: dict[str, str]  # Reason for each column that the model does not use
    slices: tuple[str, ...]  # Columns with few values, for the evaluation
    training: TrainingPlan
    # Columns that CsvExampleGen leaves as text though they look like numbers.
    text_columns: tuple[str, ...] = ()
    text_formats: dict[str, TextFormat] = {}  # How columns write numbers and booleans, in case they are text

    @staticmethod
    def from_custom_config(custom_config: dict[str, Any]) -> "TabularPlan":
        return TabularPlan.model_validate(custom_config[PLAN_KEY])

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Raw columns that `preprocessing_fn` reads: `columns`, the group's and the weight's."""
        weight = self.weight.column if self.weight else None
        return (*self.columns, *filter(None, [self.group, weight]))

    def notes(self) -> list[str]:
        """Returns notes about the plan for the user, one sentence each."""
        classes = f" with {len(self.label.classes)} classes" if self.label.classes else ""
        more = "".join(
            f" and {counted(len(parts), 'column')} of {what}"
            for parts, what in ((self.text, "text"), (self.lists, "lists"))
            if parts
        )
        weights = f"; {self.weight.describe(self.label)}" if self.weight else ""
        return [
            f"{self.label.problem_type} problem: {self.label.column!r}{classes} from "
            f"{len(self.numeric)} numeric and {len(self.categorical)} categorical features{more}{weights}",
            self.training.describe(),
            *self.decision_notes(),
            *(f"column {column!r} is not used: {reason}" for column, reason in self.ignored.items()),
        ]

    @property
    def decides(self) -> bool:
        """True for a binary model whose decision threshold is configured."""
        return self.training.decide is not None and self.label.problem_type == "binary"

    def decision_notes(self) -> list[str]:
        """Names the positive class of two and its threshold."""
        if self.label.problem_type != "binary":
            return []
        decide = self.training.decide
        if decide is None or isinstance(decide, float):
            threshold = f"{0.5 if decide is None else decide:g}"
        else:
            threshold = f"a threshold that is chosen on held-out rows ({describe_goal(decide)})"
        share = f"{100 * self.label.positive_share:.3g} % of the rows"
        return [f"positive class: {self.label.classes[1]!r}, {share}; predicted at p > {threshold}"]

    def training_config(self) -> dict[str, Any]:
        """Returns the plan as an entry of Trainer's `custom_config`."""
        return {PLAN_KEY: self.model_dump(mode="json")}


def possible_models(plan: FeaturePlan) -> tuple[ModelName, ...]:
    """Returns the models that can learn from the plan's features: trees need more than text."""
    models: tuple[ModelName, ...] = get_args(ModelName)
    if plan.numeric or plan.categorical or plan.lists:
        return models
    return tuple(model for model in models if model != "boosted_trees")


def fewest_rows_of_interval(level: float) -> int:
    """Returns the number of held-out rows without which an interval of this level would be infinite."""
    return math.ceil(2 / (1 - level) - 1e-9) - 1
