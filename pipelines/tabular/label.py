"""Plan of the label column: its problem type and classes."""

import math
from pathlib import Path

from components.nearest import nearest_first
from pipelines.config.pipeline_config import DataConfig, ProblemType
from pipelines.config.toml import columns_entry
from pipelines.data.cells import Cell
from pipelines.data.column_cells import ColumnCells
from pipelines.data.column_profile import ColumnProfile, is_number
from pipelines.data.faults import describe_missing_header, describe_separator
from pipelines.data.formats.number_format import NUMBER_START
from pipelines.data.kinds import ColumnKind
from pipelines.data.missing import MISSING_TOKENS
from pipelines.data.number_kinds import first_unreadable
from pipelines.data.profile import CsvProfile
from pipelines.data.word_kinds import boolean_words
from pipelines.errors import BadInputError, counted, shown
from pipelines.tabular.plan import LabelPlan

MIN_LABELLED_ROWS = 20
MAX_INTEGER_CLASSES = 20  # integer labels with more distinct values are quantities
MAX_CLASSES = 1_000  # text labels with more distinct values are ids or free text
MIN_NUMBER_SHARE = 0.9  # of text labels that start as numbers do: are they classes?
MAX_LABEL_ROUNDING = 0.01  # of the standard deviation of a regression label


def check_has_label(file: Path, names: list[str], label: str) -> None:
    """Checks that one of a file's columns is the label."""
    if label in names:
        return
    near = nearest_first(label, names, min_similarity=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    separator = describe_separator(names, label)
    hint = f" {separator}" if separator else hint or f" {describe_missing_header(names)}".rstrip()
    raise BadInputError(
        f"{file}, line 1: there is no label column {label!r}.{hint} "
        f"Columns: {', '.join(map(repr, names[:30]))}{', ...' if len(names) > 30 else ''}."
    )


def check_label_column(profile: CsvProfile, label: str) -> ColumnProfile:
    file = profile.user_files[0]
    check_has_label(file, list(profile.columns), label)
    column = profile.columns[label]
    if column.num_values == 0:
        raise BadInputError(
            f"{file}: the label column {label!r} is empty in "
            f"{'the only row' if profile.num_rows == 1 else f'all {profile.num_rows} rows'} "
            f"(lines 2 to {profile.num_rows + 1})."
        )
    return column


def plan_label(
    profile: CsvProfile, column: ColumnProfile, data: DataConfig, kind: ColumnKind | None = None
) -> LabelPlan:
    where = f"{profile.user_files[0]}, column {column.name!r} (lines 2 to {profile.num_rows + 1})"
    if column.num_values < MIN_LABELLED_ROWS:
        raise BadInputError(
            f"{where}: {counted(column.num_values, 'row')} "
            f"{'has' if column.num_values == 1 else 'have'} a label; at least {MIN_LABELLED_ROWS} are "
            f"needed to train and to evaluate.{_say_missing(column)}"
        )
    if kind is not None and kind.number_format and data.problem_type in (None, "regression"):
        return _plan_formatted(where, profile, column, data, kind)
    given = kind.name if kind is not None and kind.is_given else ""
    if given != "category":
        _check_label_cells(profile, column, data)
    # Codes with leading zeros are text: 007 is not 7.
    is_numeric = column.is_numeric and not (kind is not None and kind.name == "category" and kind.keeps_text)
    counts = _count_labels(column, is_numeric)
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
    if data.problem_type is None and given in ("category", "number"):
        problem_type = "regression" if given == "number" else _class_type(distinct)
    if problem_type == "regression":
        if not column.is_numeric:
            raise BadInputError(
                f"{where}: regression needs numbers; received {profile.find_non_number(column.name)}."
            )
        _check_label_precision(where, column)
        return LabelPlan(
            column=column.name,
            problem_type="regression",
            values="number",
            mean=column.mean,
            stddev=math.sqrt(column.variance) or 1.0,
        )
    if kind is not None and not kind.is_given and data.problem_type is None:
        _ask_about_numbers(where, profile, column, kind)
    if counts is None or len(counts) > MAX_CLASSES:
        raise BadInputError(
            f"{where}: more than {MAX_CLASSES} different labels look like ids or free text, not like classes."
        )
    if column.is_numeric and not integral:
        raise BadInputError(
            f"{where}: {problem_type} classification needs integer or text labels; the column "
            'holds fractions. Set data.problem_type = "regression".'
        )
    if is_numeric:
        _check_classes_differ(profile, column, counts)
    if (problem_type == "binary") != (len(counts) == 2):
        needed = "2 classes" if problem_type == "binary" else "3 classes or more"
        raise BadInputError(f"{where}: {problem_type} classification needs {needed}; received {len(counts)}.")
    classes = sorted(counts, key=int) if is_numeric else sorted(counts)
    if problem_type == "binary":
        positive = _yes_class(column, classes) if data.positive is None else str(data.positive)
        classes = _positive_last(classes, positive, where)
    num_rows = sum(counts.values())
    return LabelPlan(
        column=column.name,
        problem_type=problem_type,
        values="number" if is_numeric else "text",
        classes=tuple(classes),
        majority_share=max(counts.values()) / num_rows,
        positive_share=counts[classes[-1]] / num_rows if problem_type == "binary" else 0.0,
    )


def _yes_class(column: ColumnProfile, classes: list[str]) -> str:
    """Returns the class of two that means yes, or else the last one."""
    yes = (boolean_words(column) or [None])[0]
    return next((name for name in classes if name.lower() == yes), classes[-1])


def _positive_last(classes: list[str], positive: str, where: str) -> list[str]:
    if positive not in classes:
        raise BadInputError(
            f"{where}: data.positive = {positive!r}; the classes are {classes[0]!r} and {classes[1]!r}."
        )
    return sorted(classes, key=lambda name: name == positive)


def _plan_formatted(
    where: str, profile: CsvProfile, column: ColumnProfile, data: DataConfig, kind: ColumnKind
) -> LabelPlan:
    """Returns the plan of a label of numbers that `float` does not read, such as amounts of money."""
    written, moments = kind.number_format, kind.moments
    if written is None or moments is None:
        raise ValueError(f"Such numbers have a format and moments. Received: kind={kind}")
    if moments.num_unreadable:
        odd = first_unreadable(ColumnCells(profile, column.name), written)
        cell = profile.find_cell(column.name, lambda text: text == odd)
        raise BadInputError(_describe_odd_label(cell, column, moments.num_unreadable))
    if not kind.is_given and data.problem_type is None:
        distinct = column.num_distinct
        has_unit = bool(written.unit or written.clock or written.scale not in (None, "multiples"))
        if has_unit and distinct is not None and distinct <= MAX_INTEGER_CLASSES:
            raise BadInputError(_ask(where, column, f"look like numbers ({kind.note})"))
    return LabelPlan(
        column=column.name,
        problem_type="regression",
        values="number",
        mean=moments.mean,
        stddev=math.sqrt(moments.variance) or 1.0,
        number_format=written,
    )


def _ask_about_numbers(where: str, profile: CsvProfile, column: ColumnProfile, kind: ColumnKind) -> None:
    """Asks whether a text label with many different values, nearly all of which begin like numbers."""
    distinct = column.num_distinct
    is_few = distinct is not None and distinct <= MAX_INTEGER_CLASSES
    if is_few or column.is_numeric or kind.name == "date":
        return
    if ColumnCells(profile, column.name).count(NUMBER_START) >= MIN_NUMBER_SHARE * column.num_values:
        note = f" ({kind.note})" if kind.note else ""
        raise BadInputError(_ask(where, column, f"look like numbers{note}"))


def _ask(where: str, column: ColumnProfile, looks: str) -> str:
    distinct = "many" if column.num_distinct is None else column.num_distinct
    example = next(iter(column.distinct_values or ()), "")
    such = f", such as {shown(example)!r}," if example else ""
    return (
        f"{where}: the label has {distinct} different values{such} that {looks}. Say which they are: "
        f'{columns_entry(column.name, "number")} predicts a number, "category" one of {distinct} classes.'
    )


def _check_label_cells(profile: CsvProfile, column: ColumnProfile, data: DataConfig) -> None:
    """Checks that no label is lost or changed on its way into the model."""
    if column.is_numeric and column.num_beyond_float32:
        cell = profile.find_beyond_float32(column.name)
        raise BadInputError(
            f"{cell.file}, line {cell.line}, column {column.name!r}: the label {shown(cell.value)!r} "
            "is beyond the range of float32, which TFX reads numbers as. Correct it, leave the cell "
            "empty, or scale the column."
        )
    if column.is_text_by_few_cells and data.problem_type not in ("binary", "multi-class"):
        cell = profile.find_non_number(column.name)
        raise BadInputError(_describe_odd_label(cell, column, column.num_non_numbers or 0))


def _describe_odd_label(cell: Cell, column: ColumnProfile, num_odd: int) -> str:
    num_numbers = column.num_values - num_odd
    others = {1: "", 2: ", nor is 1 other"}.get(num_odd, f", nor are {num_odd - 1} others")
    if num_odd == 1:
        numbers = "1 other is" if num_numbers == 1 else f"{num_numbers} others are"
    else:
        numbers = f"{num_numbers} {'is' if num_numbers == 1 else 'are'}"
    correct = "Correct it or leave the cell" if num_odd == 1 else "Correct them or leave the cells"
    return (
        f"{cell.file}, line {cell.line}, column {column.name!r}: the label {shown(cell.value)!r} "
        f"is not a number{others}, while {numbers}. {correct} empty; if "
        f"{'it is a class' if num_odd == 1 else 'they are classes'}, set data.problem_type to "
        '"binary" or "multi-class".'
    )


def _count_labels(column: ColumnProfile, is_numeric: bool) -> dict[str, int] | None:
    """Returns the count of each label, where `1` and `1.0` are the same; None if there are too many."""
    if column.distinct_values is None:
        return None
    counts: dict[str, int] = {}
    for value, count in column.distinct_values.items():
        name = class_name(value) if is_numeric else value
        counts[name] = counts.get(name, 0) + count
    return counts


def class_name(number: str) -> str:
    """Returns the name of a class that is a number, without a fraction of zero."""
    try:
        return str(int(number))
    except ValueError:
        value = float(number)
        return str(int(value)) if value.is_integer() else str(value)


def _check_classes_differ(profile: CsvProfile, column: ColumnProfile, counts: dict[str, int]) -> None:
    """Checks that classes that are numbers stay different in the type that stores them."""
    # Integers are int64 in a tf.Example, and float64 when labels are read; other numbers are float32.
    bits = 53 if column.type == "integer" else 24
    inexact = sorted((name for name in counts if abs(int(name)) > 2**bits), key=int)
    if inexact:
        cell = profile.find_cell(column.name, lambda text: is_number(text) and class_name(text) == inexact[0])
        raise BadInputError(
            f"{cell.file}, line {cell.line}, column {column.name!r}: "
            f"the class {inexact[0]} is beyond {2**bits}, where "
            f"{'float64' if bits == 53 else 'float32'} cannot tell integers apart. Number the classes "
            "from 0, or name them with a letter in front."
        )


def _check_label_precision(where: str, column: ColumnProfile) -> None:
    """Checks that labels of a regression differ by more than the rounding error of float32."""
    low, high = column.minimum or 0.0, column.maximum or 0.0
    rounding = max(abs(low), abs(high)) * 2.0**-24
    if rounding > MAX_LABEL_ROUNDING * math.sqrt(column.variance):
        raise BadInputError(
            f"{where}: float32, which stores the labels, can hardly tell them apart: they lie between "
            f"{low!r} and {high!r}, where it rounds by up to {rounding:.2g}. Subtract a constant "
            f"such as {round(column.mean)} from the column."
        )


def _say_missing(column: ColumnProfile) -> str:
    """Returns a sentence about the cells that count as missing, if some are not empty."""
    if not column.holds_missing_tokens:
        return ""
    tokens = ", ".join(repr(token) for token in MISSING_TOKENS if token)
    they = (
        "row counts as unlabelled: it is" if column.num_missing == 1 else "rows count as unlabelled: they are"
    )
    return (
        f" {column.num_missing} {they} empty or one of {tokens}. If one "
        "of these is a class, write another word for it."
    )


def _problem_type(column: ColumnProfile, integral: bool, distinct: int | None) -> ProblemType:
    if column.is_numeric and (not integral or distinct is None or distinct > MAX_INTEGER_CLASSES):
        return "regression"
    return _class_type(distinct)


def _class_type(distinct: int | None) -> ProblemType:
    return "binary" if distinct == 2 else "multi-class"
