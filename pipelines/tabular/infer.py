"""Infers a `TabularPlan` from the profile of a CSV."""

import math
from collections.abc import Mapping

from components.nearest import nearest_first
from pipelines.config import DataConfig, PipelineConfig, ProblemType
from pipelines.data.cells import shown
from pipelines.data.faults import describe_separator
from pipelines.data.kinds import ColumnKind, recognise_columns, text_columns
from pipelines.data.profile import (
    MAX_DISTINCT,
    MISSING_TOKENS,
    ColumnProfile,
    CsvProfile,
    is_number,
)
from pipelines.errors import BadInputError
from pipelines.tabular.plan import (
    CategoricalFeature,
    LabelPlan,
    NumericFeature,
    TabularPlan,
    TextFeature,
    TrainingPlan,
)

MIN_LABELLED_ROWS = 20
MAX_INTEGER_CLASSES = 20  # integer labels with more distinct values are quantities
MAX_CLASSES = 1_000  # a text label with more is an id or free text
MAX_MISSING_SHARE = 0.95
MAX_LABEL_ROUNDING = 0.01  # of the standard deviation of a regression label
MAX_VOCABULARY = 2_000  # beyond, categories are hashed
MAX_HASH_BUCKETS = 10_000
MAX_CODE_VALUES = 100  # an integer column with no more may also be a code
MIN_ROWS_PER_CODE = 50
MAX_SLICE_VALUES = 10
MAX_SLICE_COLUMNS = 3
TEXT_BUCKETS = 5_000
MIN_DAYS_OF_WEEKDAYS = 14  # dates over fewer days say nothing of the day of the week
MIN_DAYS_OF_MONTHS = 90
TRAIN_SHARE = 2 / 3  # of the rows: the split that ExampleGen makes


def check_label_column(profile: CsvProfile, label: str) -> ColumnProfile:
    """Returns the profile of the label column.

    Raises:
      BadInputError: There is no such column, or it holds no value at all.
    """
    column = profile.columns.get(label)
    file = profile.files[0]
    if column is None:
        names = list(profile.columns)
        near = nearest_first(label, names, min_similarity=0.6)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        separator = describe_separator(names)
        hint = f" {separator}" if separator else hint
        raise BadInputError(
            f"{file}, line 1: there is no label column {label!r}.{hint} "
            f"Columns: {', '.join(map(repr, names[:30]))}{', ...' if len(names) > 30 else ''}."
        )
    if column.num_values == 0:
        raise BadInputError(
            f"{file}: the label column {label!r} is empty in all {profile.num_rows} rows "
            f"(lines 2 to {profile.num_rows + 1})."
        )
    return column


def infer_kinds(profile: CsvProfile, config: PipelineConfig) -> dict[str, ColumnKind]:
    """Returns what each column is taken for, the configuration going before the inference.

    Raises:
      BadInputError: The configuration names no column, or the cells do not fit what it says.
    """
    data = config.data
    given = dict(config.columns)
    for key in ("exclude", "numeric", "categorical"):
        for name in getattr(data, key):
            if name not in profile.columns:
                raise BadInputError(
                    f"There is no column {name!r}. Columns: {', '.join(profile.columns)}."
                )
            if name in config.columns:
                raise BadInputError(
                    f"[columns] {name} = {config.columns[name]!r}: data.{key} names this column, too. "
                    "Remove one of the two."
                )
            if key != "exclude":
                given[name] = "number" if key == "numeric" else "category"
    return recognise_columns(profile, given, data.decimal, data.dates)


def infer_plan(
    profile: CsvProfile,
    config: PipelineConfig,
    kinds: Mapping[str, ColumnKind] | None = None,
) -> TabularPlan:
    """Returns the plan for the data and what the configuration says about them.

    Args:
      profile: Of the files.
      config: The configuration.
      kinds: What each column is taken for. Default: inferred.

    Raises:
      BadInputError: The label or the columns cannot be learned from, or a name in the
        configuration is no column.
    """
    data = config.data
    kinds = infer_kinds(profile, config) if kinds is None else kinds
    column = check_label_column(profile, data.label)
    label = plan_label(profile, column, data, kinds[column.name])
    numeric: list[NumericFeature] = []
    categorical: list[CategoricalFeature] = []
    text: list[TextFeature] = []
    ignored: dict[str, str] = {}
    slices: list[str] = []
    for column in profile.columns.values():
        kind = kinds[column.name]
        if column.name == data.label:
            continue
        reason = _why_ignored(column, kind, profile, data)
        if reason:
            ignored[column.name] = reason
        elif kind.name == "date":
            days, parts = _date_features(column, kind)
            numeric.append(days)
            categorical += parts
        elif kind.name == "text":
            text.append(TextFeature(column=column.name, hash_buckets=TEXT_BUCKETS))
        else:
            as_number, as_category = _roles(column, kind, data)
            if as_number:
                numeric.append(_numeric_feature(column, kind))
            if as_category:
                categorical.append(
                    CategoricalFeature(
                        column=column.name,
                        num_values=column.num_distinct or MAX_DISTINCT,
                        hash_buckets=_hash_buckets(column),
                        words=kind.words if column.type == "string" else None,
                    )
                )
                if column.num_distinct is not None and column.num_distinct <= MAX_SLICE_VALUES:
                    slices.append(column.name)
    if not numeric and not categorical and not text:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in ignored.items())
        raise BadInputError(
            f"{profile.files[0]}: no column is left to learn {data.label!r} from"
            f"{' (' + reasons + ')' if reasons else ''}."
        )
    kept_as_text = text_columns(kinds)
    plan = TabularPlan(
        label=label,
        numeric=tuple(numeric),
        categorical=tuple(categorical),
        num_buckets=10 if profile.num_rows < 10_000 else 20,
        text=tuple(text),
        ignored=ignored,
        slices=tuple(slices[:MAX_SLICE_COLUMNS]),
        training=_plan_training(profile.num_rows, config),
    )
    used = set(plan.columns)
    return plan.model_copy(
        update={"text_columns": tuple(name for name in kept_as_text if name in used)}
    )


def _numeric_feature(column: ColumnProfile, kind: ColumnKind) -> NumericFeature:
    if kind.moments is None:
        has_missing = column.num_missing + column.num_beyond_float32 > 0
        return NumericFeature(column=column.name, center=column.mean, has_missing=has_missing)
    return NumericFeature(
        column=column.name,
        center=kind.moments.mean,
        has_missing=column.num_missing + kind.moments.num_unreadable > 0,
        decimal=kind.decimal,
    )


def _date_features(
    column: ColumnProfile, kind: ColumnKind
) -> tuple[NumericFeature, list[CategoricalFeature]]:
    """Returns the days of a column of dates, and those of its calendar parts that vary."""
    if kind.moments is None:
        raise ValueError(f"Dates have moments. Received: kind={kind}")
    days = NumericFeature(
        column=column.name,
        center=kind.moments.mean,
        has_missing=column.num_missing + kind.moments.num_unreadable > 0,
        date=kind.date_format,
    )
    span_days = kind.moments.maximum - kind.moments.minimum
    parts: list[CategoricalFeature] = []
    for part, num_values, varies in (
        ("month", 12, span_days >= MIN_DAYS_OF_MONTHS),
        ("weekday", 7, span_days >= MIN_DAYS_OF_WEEKDAYS),
        ("hour", 24, kind.has_time),
    ):
        if varies:
            parts.append(
                CategoricalFeature.model_validate(
                    {
                        "column": column.name,
                        "num_values": num_values,
                        "date": kind.date_format,
                        "part": part,
                    }
                )
            )
    return days, parts


def plan_label(
    profile: CsvProfile,
    column: ColumnProfile,
    data: DataConfig,
    kind: ColumnKind | None = None,
) -> LabelPlan:
    """Returns what the label column is taken for.

    Args:
      profile: Of the files.
      column: The label's.
      data: What the configuration says of it.
      kind: What the column is taken for; None looks at its type alone.

    Raises:
      BadInputError: It cannot be learned: too few labels, one class, too many classes.
    """
    where = f"{profile.files[0]}, column {column.name!r} (lines 2 to {profile.num_rows + 1})"
    if column.num_values < MIN_LABELLED_ROWS:
        raise BadInputError(
            f"{where}: {column.num_values} rows have a label; at least {MIN_LABELLED_ROWS} are "
            f"needed to train and to evaluate.{_say_missing(column)}"
        )
    if kind is not None and kind.decimal is not None and kind.moments is not None:
        if data.problem_type in (None, "regression") and kind.moments.variance > 0:
            return LabelPlan(
                column=column.name,
                problem_type="regression",
                values="number",
                mean=kind.moments.mean,
                stddev=math.sqrt(kind.moments.variance),
                decimal=kind.decimal,
            )
    _check_label_cells(profile, column, data)
    counts = _count_labels(column)
    distinct = None if counts is None else len(counts)
    if counts is not None and distinct == 1:
        raise BadInputError(
            f"{where}: every label is {next(iter(counts))!r}; at least two different values are "
            f"needed.{_say_missing(column)}"
        )
    integral = column.is_numeric and all(
        float(value).is_integer() for value in column.distinct_values or ["nan"]
    )
    problem_type = data.problem_type or _problem_type(column, integral, distinct)
    if problem_type == "regression":
        if not column.is_numeric:
            raise BadInputError(
                f"{where}: regression needs numbers; received "
                f"{profile.find_non_number(column.name)}."
            )
        _check_label_precision(where, column)
        return LabelPlan(
            column=column.name,
            problem_type="regression",
            values="number",
            mean=column.mean,
            stddev=math.sqrt(column.variance) or 1.0,
        )
    if counts is None or len(counts) > MAX_CLASSES:
        raise BadInputError(
            f"{where}: more than {MAX_CLASSES} different labels look like ids or free text, "
            "not like classes."
        )
    if column.is_numeric and not integral:
        raise BadInputError(
            f"{where}: {problem_type} classification needs integer or text labels; the column "
            'holds fractions. Set data.problem_type = "regression".'
        )
    _check_classes_differ(profile, column, counts)
    if problem_type == "binary" and len(counts) != 2:
        raise BadInputError(
            f"{where}: binary classification needs 2 classes; received {len(counts)}."
        )
    return LabelPlan(
        column=column.name,
        problem_type=problem_type,
        values="number" if column.is_numeric else "text",
        classes=tuple(sorted(counts, key=int) if column.is_numeric else sorted(counts)),
        majority_share=max(counts.values()) / sum(counts.values()),
    )


def _check_label_cells(profile: CsvProfile, column: ColumnProfile, data: DataConfig) -> None:
    """Checks that no label is lost or changed on its way into the model."""
    if column.is_numeric and column.num_beyond_float32:
        cell = profile.find_beyond_float32(column.name)
        raise BadInputError(
            f"{cell.file}, line {cell.line}, column {column.name!r}: the label {shown(cell.value)!r} "
            "is beyond what float32 can hold, which TFX reads numbers as. Mend it, leave the cell "
            "empty, or scale the column."
        )
    if column.is_text_by_few_cells and data.problem_type not in ("binary", "multi-class"):
        cell = profile.find_non_number(column.name)
        raise BadInputError(
            f"{cell.file}, line {cell.line}, column {column.name!r}: the label {shown(cell.value)!r} "
            f"is no number, while {column.num_values - (column.num_non_numbers or 0)} others are. "
            "Mend it or leave the cell empty; if it is a class, set data.problem_type to "
            '"binary" or "multi-class".'
        )


def _count_labels(column: ColumnProfile) -> dict[str, int] | None:
    """Returns how often each label occurs, `1` and `1.0` being one; None when there are too many."""
    if column.distinct_values is None:
        return None
    counts: dict[str, int] = {}
    for value, count in column.distinct_values.items():
        name = _class_name(value) if column.is_numeric else value
        counts[name] = counts.get(name, 0) + count
    return counts


def _class_name(number: str) -> str:
    """Returns the name of a class that is a number, without a fraction of zero."""
    try:
        return str(int(number))
    except ValueError:
        value = float(number)
        return str(int(value)) if value.is_integer() else str(value)


def _check_classes_differ(
    profile: CsvProfile, column: ColumnProfile, counts: dict[str, int]
) -> None:
    """Checks that classes which are numbers stay different ones where they are stored."""
    if not column.is_numeric:
        return
    # An integer column is int64 in a tf.Example, and float64 where labels are read; others float32.
    bits = 53 if column.type == "integer" else 24
    inexact = sorted((name for name in counts if abs(int(name)) > 2**bits), key=int)
    if inexact:
        cell = profile.find_cell(
            column.name, lambda text: is_number(text) and _class_name(text) == inexact[0]
        )
        raise BadInputError(
            f"{cell.file}, line {cell.line}, column {column.name!r}: "
            f"the class {inexact[0]} is beyond {2**bits}, from where on "
            f"{'float64' if bits == 53 else 'float32'} cannot tell integers apart. Number the classes "
            "from 0, or name them with a letter in front."
        )


def _check_label_precision(where: str, column: ColumnProfile) -> None:
    """Checks that labels of a regression differ by more than float32 rounds them by."""
    low, high = column.minimum or 0.0, column.maximum or 0.0
    rounding = max(abs(low), abs(high)) * 2.0**-24
    if rounding > MAX_LABEL_ROUNDING * math.sqrt(column.variance):
        raise BadInputError(
            f"{where}: float32, which holds the labels, can hardly tell them apart: they lie between "
            f"{low!r} and {high!r}, where it rounds by up to {rounding:.2g}. Subtract a constant "
            f"such as {round(column.mean)} from the column."
        )


def _say_missing(column: ColumnProfile) -> str:
    """Returns a sentence on the cells that were taken for missing, where they say something."""
    if not column.holds_missing_tokens:
        return ""
    tokens = ", ".join(repr(token) for token in MISSING_TOKENS if token)
    return (
        f" {column.num_missing} rows count as unlabelled: they are empty or one of {tokens}. If one "
        "of these is a class, write another word for it."
    )


def _problem_type(column: ColumnProfile, integral: bool, distinct: int | None) -> ProblemType:
    if column.is_numeric and (not integral or distinct is None or distinct > MAX_INTEGER_CLASSES):
        return "regression"
    return "binary" if distinct == 2 else "multi-class"


def _why_ignored(
    column: ColumnProfile, kind: ColumnKind, profile: CsvProfile, data: DataConfig
) -> str | None:
    if column.name in data.exclude:
        return "excluded by data.exclude"
    if kind.name in ("empty", "constant", "id"):
        return kind.note
    if kind.doubt is not None and kind.moments is None:
        return "day and month cannot be told apart (set data.dates)"
    if kind.is_given:
        return None
    if column.num_missing > MAX_MISSING_SHARE * profile.num_rows:
        return f"{column.num_missing} of {profile.num_rows} values are missing"
    return None


def _roles(column: ColumnProfile, kind: ColumnKind, data: DataConfig) -> tuple[bool, bool]:
    """Returns whether the column is used as a number, and whether as a category."""
    if column.name in (*data.numeric, *data.categorical):
        return column.name in data.numeric, column.name in data.categorical
    if kind.name != "number":
        return False, True
    distinct = column.num_distinct
    is_code = (
        column.type == "integer"
        and distinct is not None
        and 2 < distinct <= MAX_CODE_VALUES
        and column.num_values >= MIN_ROWS_PER_CODE * distinct
    )
    return True, is_code


def _hash_buckets(column: ColumnProfile) -> int | None:
    distinct = column.num_distinct
    if distinct is not None and distinct <= MAX_VOCABULARY:
        return None
    return MAX_HASH_BUCKETS if distinct is None else min(2 * distinct, MAX_HASH_BUCKETS)


def _plan_training(num_rows: int, config: PipelineConfig) -> TrainingPlan:
    trainer = config.trainer
    limits = ((2_000, 32), (10_000, 64), (100_000, 128), (1_000_000, 256))
    batch_size = trainer.batch_size or next(
        (size for limit, size in limits if num_rows < limit), 512
    )
    steps_per_epoch = max(1, num_rows * TRAIN_SHARE / batch_size)
    small = num_rows < 2_000
    return TrainingPlan(
        batch_size=batch_size,
        train_steps=trainer.train_steps or round(min(max(10 * steps_per_epoch, 800), 20_000)),
        eval_steps=trainer.eval_steps,
        hidden_units=trainer.hidden_units or ((16,) if small else (64, 32)),
        learning_rate=trainer.learning_rate or 0.003,
        linear_learning_rate=0.02,
        dropout=0.1 if small else 0.0,
        seed=trainer.seed,
    )
