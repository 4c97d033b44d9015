"""Infers a `TabularPlan` from the profile of a CSV."""

from collections.abc import Mapping

from pipelines.config.data import ColumnUse
from pipelines.config.pipeline_config import DataConfig, PipelineConfig
from pipelines.config.trainer import MAX_FOLDS
from pipelines.data.column_cells import ColumnCells
from pipelines.data.column_profile import MAX_DISTINCT, ColumnProfile
from pipelines.data.formats.date_format import DateFormat
from pipelines.data.kinds import ColumnKind, recognise_columns, text_columns
from pipelines.data.profile import CsvProfile
from pipelines.data.word_kinds import find_text_format
from pipelines.errors import BadInputError
from pipelines.tabular.label import check_label_column, plan_label
from pipelines.tabular.plan import (
    CategoricalFeature,
    LabelPlan,
    ListFeature,
    NumericFeature,
    TabularPlan,
    TextFeature,
    TrainingPlan,
    TreesPlan,
    fewest_rows_of_interval,
)
from pipelines.tabular.weights import plan_weights

MAX_MISSING_SHARE = 0.95
MAX_VOCABULARY = 2_000  # categories with more values are hashed
MAX_HASH_BUCKETS = 10_000
MAX_CODE_VALUES = 100  # an integer column with no more may also be a code
MIN_ROWS_PER_CODE = 50
MIN_ROWS_PER_BUCKET = 50
MAX_SLICE_VALUES = 10
MAX_SLICE_COLUMNS = 3
TEXT_BUCKETS = 50_000
MIN_TEXTS_FOR_PAIRS = 20_000  # with fewer, pairs of words overfit
MIN_DAYS_OF_WEEKDAYS = 14  # over fewer days, the day of the week is not used
MIN_DAYS_OF_MONTHS = 90
MIN_ROWS_TO_HOLD_OUT = 200  # a sixth of fewer rows is too few for early stopping
MIN_ROWS_OF_ONE_FOLD = 5_000  # a sixth of fewer is too few to judge models on
MAX_HELD_OUT_ROWS = 20_000  # more take time without a benefit
MAX_TREES = 800  # that are all grown
MAX_STOPPED_TREES = 2_000  # with early stopping, which the limit should not forestall
MAX_ROWS_OF_SLOW_TREES = 100_000  # with more, half the trees at twice the learning rate
MIN_TREES = 50
MAX_TREES_OF_CLASSES = 4_000  # an iteration has a tree for each class above two
MIN_LEAF_ROWS = 20
MIN_LEAF_HESSIAN = 1e-3  # p * (1 - p) falls to 0 where classes are told apart


def infer_kinds(
    profile: CsvProfile, config: PipelineConfig, kept: Mapping[str, ColumnUse] | None = None
) -> dict[str, ColumnKind]:
    """Returns the kind of each column; the configuration takes precedence over the inference."""
    data = config.data
    configured = {**(kept or {}), **config.columns}
    for key in ("exclude", "numeric", "categorical"):
        for name in getattr(data, key):
            if name not in profile.columns:
                raise BadInputError(f"There is no column {name!r}. Columns: {', '.join(profile.columns)}.")
            if name in config.columns:
                raise BadInputError(
                    f"[columns] {name} = {config.columns[name]!r}: data.{key} names this column, too. "
                    "Remove one of the two."
                )
            if key != "exclude":
                configured[name] = "number" if key == "numeric" else "category"
    return recognise_columns(profile, configured, data.decimal, data.dates)


def infer_plan(
    profile: CsvProfile, config: PipelineConfig, kinds: Mapping[str, ColumnKind] | None = None
) -> TabularPlan:
    """Returns the plan for the data and the configuration."""
    data = config.data
    kinds = infer_kinds(profile, config) if kinds is None else kinds
    column = check_label_column(profile, data.label)
    num_rows = column.num_values  # the others are left out
    label = plan_label(profile, column, data, kinds[column.name])
    weight, label = plan_weights(profile, config, kinds, label)
    numeric: list[NumericFeature] = []
    categorical: list[CategoricalFeature] = []
    text: list[TextFeature] = []
    lists: list[ListFeature] = []
    ignored: dict[str, str] = {}
    slices: list[str] = []
    for column in profile.columns.values():
        kind = kinds[column.name]
        if column.name in (data.label, data.weight):
            continue
        reason = _why_ignored(column, kind, profile, config)
        if reason:
            ignored[column.name] = reason
        elif kind.name == "date":
            days, parts = _date_features(column, kind)
            numeric.append(days)
            categorical += parts
        elif kind.name == "text":
            has_pairs = column.num_values >= MIN_TEXTS_FOR_PAIRS
            text.append(TextFeature(column=column.name, hash_buckets=TEXT_BUCKETS, has_pairs=has_pairs))
        elif kind.list_parts:
            list_parts = kind.list_parts
            lists.append(
                ListFeature(column=column.name, separator=list_parts.separator, parts=list_parts.parts)
            )
        else:
            as_number, as_category = _roles(column, kind, data)
            if as_number:
                numeric.append(_numeric_feature(column, kind))
            if as_category:
                categorical.append(
                    CategoricalFeature(
                        column=column.name,
                        num_values=2 if kind.words else column.num_distinct or MAX_DISTINCT,
                        hash_buckets=_hash_buckets(column),
                        words=kind.words if column.type == "string" else None,
                    )
                )
                if column.num_distinct is not None and column.num_distinct <= MAX_SLICE_VALUES:
                    slices.append(column.name)
    if not (numeric or categorical or text or lists):
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in ignored.items())
        raise BadInputError(
            f"{profile.user_files[0]}: no column is left to learn {data.label!r} from"
            f"{' (' + reasons + ')' if reasons else ''}."
        )
    if not (numeric or categorical or lists) and config.trainer.model == "boosted_trees":
        raise BadInputError(
            f"trainer.model = 'boosted_trees': trees need numbers or categories, and {profile.user_files[0]} "
            'has only free text besides the label. Set another model, such as "linear".'
        )
    kept_as_text = text_columns(kinds)
    num_buckets = 10 if num_rows < 10_000 else 20
    min_rows = MIN_ROWS_PER_BUCKET * num_buckets * len(numeric)
    plan = TabularPlan(
        label=label,
        numeric=tuple(numeric),
        categorical=tuple(categorical),
        num_buckets=num_buckets if num_rows >= min_rows else 0,
        group=config.split.column if config.split.by == "column" else None,
        weight=weight,
        text=tuple(text),
        lists=tuple(lists),
        ignored=ignored,
        slices=tuple(slices[:MAX_SLICE_COLUMNS]),
        training=_plan_training(num_rows, label, config),
    )
    used = {*plan.columns, data.weight}
    as_text = [part.column for parts in (categorical, text, lists) for part in parts]
    text_formats = {
        name: text_format
        for name in dict.fromkeys(as_text)
        if (text_format := find_text_format(ColumnCells(profile, name)))
    }
    return plan.model_copy(
        update={
            "text_columns": tuple(name for name in kept_as_text if name in used),
            "text_formats": text_formats,
        }
    )


def _numeric_feature(column: ColumnProfile, kind: ColumnKind) -> NumericFeature:
    center, num_unreadable = column.mean, column.num_beyond_float32
    if kind.moments is not None:
        center, num_unreadable = kind.moments.mean, kind.moments.num_unreadable
    return NumericFeature(
        column=column.name,
        center=center,
        has_missing=column.num_missing + num_unreadable > 0,
        unreadable=kind.unreadable,
        number_format=kind.number_format,
    )


def _date_features(
    column: ColumnProfile, kind: ColumnKind
) -> tuple[NumericFeature, list[CategoricalFeature]]:
    """Returns the days of a column of dates, and its calendar parts that vary."""
    if kind.moments is None or kind.date_format is None:
        raise ValueError(f"Dates have moments and a format. Received: kind={kind}")
    days = NumericFeature(
        column=column.name,
        center=kind.moments.mean,
        has_missing=column.num_missing + kind.moments.num_unreadable > 0,
        unreadable=kind.unreadable,
        date=kind.date_format,
        newest=kind.moments.maximum,
    )
    has_days = DateFormat(kind.date_format).has_days
    span_days = kind.moments.maximum - kind.moments.minimum
    parts: list[CategoricalFeature] = []
    for part, num_values, varies in (
        ("month", 12, span_days >= MIN_DAYS_OF_MONTHS),
        ("weekday", 7, has_days and span_days >= MIN_DAYS_OF_WEEKDAYS),
        ("hour", 24, kind.has_time),
    ):
        if varies:
            parts.append(
                CategoricalFeature.model_validate(
                    {"column": column.name, "num_values": num_values, "date": kind.date_format, "part": part}
                )
            )
    return days, parts


def _why_ignored(
    column: ColumnProfile, kind: ColumnKind, profile: CsvProfile, config: PipelineConfig
) -> str | None:
    if column.name in config.data.exclude:
        return "excluded by data.exclude"
    if kind.is_new:
        return "is not in the root's schema (`schema accept` adds it)"
    if kind.name in ("empty", "constant", "id"):
        return kind.note
    if kind.name == "date" and kind.moments is None:
        return "day and month cannot be told apart (set data.dates)"
    if kind.is_given:
        return None
    if config.split.by == "column" and column.name == config.split.column:
        return "divides the splits, so the values of one split do not occur in the other"
    if column.num_missing > MAX_MISSING_SHARE * profile.num_rows:
        are = "is" if column.num_missing == 1 else "are"
        return f"{column.num_missing} of {profile.num_rows} values {are} missing"
    return None


def _roles(column: ColumnProfile, kind: ColumnKind, data: DataConfig) -> tuple[bool, bool]:
    """Returns two bools: is the column used as a number, and is it used as a category."""
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


def _check_decision(num_rows: int, label: LabelPlan, config: PipelineConfig) -> None:
    """Checks that there are two classes to decide between, and held-out rows to choose a threshold on."""
    trainer, positive = config.trainer, config.data.positive
    given = f"trainer.decide = {trainer.decide!r}"
    if label.problem_type != "binary":
        takes_the_most_probable = trainer.decide == "accuracy" and label.problem_type == "multi-class"
        if positive is None and (trainer.decide is None or takes_the_most_probable):
            return
        what = "is a number" if label.problem_type == "regression" else f"has {len(label.classes)} classes"
        given = given if positive is None else f"data.positive = {positive!r}"
        raise BadInputError(
            f"{given}: this is for two classes, and the label {label.column!r} {what}. Remove the setting."
        )
    if trainer.decide is None or isinstance(trainer.decide, float):
        return
    if not trainer.early_stopping or num_rows < MIN_ROWS_TO_HOLD_OUT or trainer.workers:
        reason = f"at least {MIN_ROWS_TO_HOLD_OUT} rows (there are {num_rows})"
        if not trainer.early_stopping:
            reason = "trainer.early_stopping = true"
        elif trainer.workers:
            reason = "a training without trainer.workers"
        raise BadInputError(
            f"{given}: the threshold is chosen on held-out training rows, which takes {reason}. Or give a "
            "threshold, such as trainer.decide = 0.3."
        )


def _check_interval(num_held_out: int, label: LabelPlan, config: PipelineConfig) -> None:
    """Checks that a number is predicted, and that there are enough errors on held-out rows."""
    level = config.trainer.interval
    if level is None:
        return
    if label.problem_type != "regression":
        raise BadInputError(
            f"trainer.interval = {level}: intervals are for numbers, and the label {label.column!r} has "
            f"{len(label.classes)} classes, whose probabilities are predicted. Remove the setting."
        )
    if config.trainer.workers or not config.trainer.early_stopping:
        raise BadInputError(
            f"trainer.interval = {level}: the interval follows from the errors on held-out training rows, "
            "which takes trainer.early_stopping = true, and a training without trainer.workers."
        )
    fewest = fewest_rows_of_interval(level)
    if num_held_out < fewest:
        raise BadInputError(
            f"trainer.interval = {level}: an interval of this level takes at least {fewest} held-out "
            f"training rows, and there are {num_held_out}. Set a lower level, or give more rows."
        )


def _plan_training(num_rows: int, label: LabelPlan, config: PipelineConfig) -> TrainingPlan:
    _check_decision(num_rows, label, config)
    trainer = config.trainer
    limits = ((2_000, 32), (10_000, 64), (100_000, 128), (1_000_000, 256))
    batch_size = trainer.batch_size or next((size for limit, size in limits if num_rows < limit), 512)
    num_training_rows = num_rows * float(config.split.shares[0])
    steps_per_epoch = max(1, num_training_rows / batch_size)
    small = num_rows < 2_000
    early_stopping = trainer.early_stopping and num_rows >= MIN_ROWS_TO_HOLD_OUT
    model, reason = trainer.model, ""
    if model == "auto" and not (early_stopping and not trainer.workers):
        model, reason = "wide_deep", "boosted trees are grown in one process"
        if not trainer.early_stopping:
            reason = "without early_stopping, no rows are held out to compare models on"
        elif not early_stopping:
            reason = f"with fewer than {MIN_ROWS_TO_HOLD_OUT} rows, none are held out to compare models on"
    # Ten epochs, or forty with early stopping.
    train_steps = round(max(10 * steps_per_epoch, 800))
    train_steps = min(4 * train_steps, 40_000) if early_stopping else min(train_steps, 20_000)
    one_held_out_in = max(6, round(num_training_rows / MAX_HELD_OUT_ROWS))
    held_out_rows = round(num_training_rows / one_held_out_in) if early_stopping else 0
    folds = trainer.folds or (MAX_FOLDS if num_rows < MIN_ROWS_OF_ONE_FOLD else 1)
    _check_interval(held_out_rows * (folds if model == "auto" else 1), label, config)
    return TrainingPlan(
        model=model,
        reason=reason,
        trees=_plan_trees(num_rows, label, config, early_stopping),
        batch_size=batch_size,
        train_steps=trainer.train_steps or train_steps,
        eval_steps=trainer.eval_steps,
        hidden_units=trainer.hidden_units or ((16,) if small and not early_stopping else (64, 32)),
        learning_rate=trainer.learning_rate or 0.003,
        linear_learning_rate=0.005,
        dropout=0.2 if early_stopping else 0.1 if small else 0.0,
        seed=trainer.seed,
        early_stopping=early_stopping,
        one_held_out_in=one_held_out_in,
        held_out_rows=held_out_rows,
        folds=folds,
        time_limit=trainer.time_limit_secs,
        decide=trainer.decide,
        interval=trainer.interval,
    )


def _plan_trees(num_rows: int, label: LabelPlan, config: PipelineConfig, early_stopping: bool) -> TreesPlan:
    trees_of_iteration = len(label.classes) if len(label.classes) > 2 else 1
    is_large = num_rows > MAX_ROWS_OF_SLOW_TREES
    at_most = MAX_STOPPED_TREES if early_stopping else MAX_TREES
    at_most = at_most // 2 if is_large else at_most
    n_trees = max(MIN_TREES, min(at_most, MAX_TREES_OF_CLASSES // trees_of_iteration))
    return TreesPlan(
        n_trees=config.trainer.n_trees or n_trees,
        max_depth=config.trainer.max_depth,
        learning_rate=0.1 if is_large else 0.05,
        min_node_examples=MIN_LEAF_ROWS,
        min_node_weight=MIN_LEAF_HESSIAN / num_rows,
        l2_regularization=1 / num_rows,
        num_batches=num_rows // TreesPlan().batch_size + 1,
    )
