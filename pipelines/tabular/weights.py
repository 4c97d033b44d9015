"""Plan of the weights of rows, from `data.weight` and `trainer.class_weights`, and the label by weight."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from components.nearest import nearest_first
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.cells import list_rows
from pipelines.data.formats.arrow_reading import read_numbers
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.kinds import ColumnKind
from pipelines.data.missing import find_missing, is_missing
from pipelines.data.profile import CsvProfile
from pipelines.data.reading import read_batches
from pipelines.errors import BadInputError, shown
from pipelines.tabular.label import class_name
from pipelines.tabular.plan import WEIGHT_KEY, LabelPlan, WeightPlan

_MAX_WEIGHT = float(np.finfo(np.float32).max)
_MAX_SHOWN = 30  # names in a message


def plan_weights(
    profile: CsvProfile, config: PipelineConfig, kinds: Mapping[str, ColumnKind], label: LabelPlan
) -> tuple[WeightPlan | None, LabelPlan]:
    """Returns the plan of the weights, if the rows have any, and the label with its statistics by weight."""
    column, class_weights = config.data.weight, config.trainer.class_weights
    if column is None and class_weights is None:
        return None, label
    _check_column(profile, config.data.label, column)
    number_format = kinds[column].number_format if column else None
    num_rows, sums, moments = 0, dict.fromkeys(label.classes, 0.0), np.zeros(3)
    for labels, weights in _read(profile, label, column, number_format):
        num_rows += len(weights)
        # Distances to the mean of all rows, since squares of the numbers themselves would be less exact.
        distances = np.zeros(len(weights))
        if label.problem_type == "regression":
            distances = read_numbers(labels, label.number_format) - label.mean
        moments += [weights.sum(), distances @ weights, distances**2 @ weights]
        if label.classes:
            encoded = labels.dictionary_encode()
            of_names = np.bincount(encoded.indices.to_numpy(), weights, len(encoded.dictionary))
            for name, weight in zip(encoded.dictionary.to_pylist(), of_names.tolist(), strict=True):
                sums[class_name(name) if label.values == "number" else name] += weight
    total = float(moments[0])
    if not total > 0:
        raise BadInputError(
            f"data.weight = {column!r}: all weights are 0, so there is nothing to learn from."
        )
    plan = WeightPlan(column=column, number_format=number_format, scale=num_rows / total)
    if label.problem_type == "regression":
        if class_weights is not None:
            raise BadInputError(
                f"trainer.class_weights: the label {label.column!r} is a number (regression), so it has no "
                "classes. Leave the setting out, or weigh the rows with data.weight."
            )
        mean, square = (float(moment) / total for moment in moments[1:])
        stddev = math.sqrt(max(square - mean**2, 0.0)) or 1.0
        return plan, label.model_copy(update={"mean": label.mean + mean, "stddev": stddev})
    if class_weights is not None:
        of_classes = _class_weights(class_weights, label, sums)
        sums = {name: weight * of_classes[name] for name, weight in sums.items()}
        total = sum(sums.values())
        plan = plan.model_copy(update={"classes": tuple(of_classes.values()), "scale": num_rows / total})
    return plan, label.model_copy(update={"majority_share": max(sums.values()) / total})


def _check_column(profile: CsvProfile, label: str, column: str | None) -> None:
    if column is not None and column not in profile.columns:
        near = nearest_first(column, list(profile.columns))[:_MAX_SHOWN]
        raise BadInputError(
            f"data.weight = {column!r}: there is no such column. Did you mean {near[0]!r}? "
            f"Columns: {', '.join(near)}."
        )
    if column == label:
        raise BadInputError(
            f"data.weight = {column!r}: it is the label, whose values are not weights. Give another column. "
            "To weigh classes, set trainer.class_weights."
        )
    if WEIGHT_KEY in profile.columns:
        raise BadInputError(
            f"{profile.user_files[0]}, line 1: the column {WEIGHT_KEY!r} has a name that is used for the "
            "weights of rows. Rename it."
        )


def _read(
    profile: CsvProfile, label: LabelPlan, column: str | None, number_format: NumberFormat | None
) -> Iterator[tuple[Any, Any]]:
    """Yields the labels of rows that have one, as pyarrow strings, and the weights of these rows."""
    import pyarrow.compute as pc

    header = list(profile.columns)
    positions = [header.index(name) for name in (label.column, column) if name is not None]
    for file in profile.files:
        for batch in read_batches(file, header, profile.dialect, positions):
            labels, missing = find_missing(batch.column(0))
            is_labelled = pc.invert(missing)
            labels = labels.filter(is_labelled)
            if column is None:
                yield labels, np.ones(len(labels))
                continue
            cells, is_empty = find_missing(batch.column(1).filter(is_labelled))
            weights = np.where(is_empty, np.nan, read_numbers(cells, number_format))
            is_wrong = ~((weights >= 0) & (weights <= _MAX_WEIGHT))
            if is_wrong.any():
                _refuse(profile, label.column, column, cells[int(is_wrong.argmax())].as_py())
            yield labels, weights


def _refuse(profile: CsvProfile, label: str, column: str, cell: str) -> NoReturn:
    """Raises an error with the first row that has both a label and this cell as its weight."""
    header = list(profile.columns)
    at, weight_at = header.index(label), header.index(column)
    for file in profile.files:
        for line, row in list_rows(file, profile.dialect):
            if row[weight_at].strip() == cell and not is_missing(row[at].strip()):
                problem = (
                    "is missing" if is_missing(cell) else f"{shown(cell)!r} is not a number of at least 0"
                )
                raise BadInputError(
                    f"{profile.originals.get(file, file)}, line {line}, column {column!r}: the weight "
                    f"{problem}. Each row with a label needs one (data.weight). Correct it, or write 0 to "
                    "ignore the row."
                )
    raise LookupError(f"No row has the weight {cell!r} in column {column!r}.")


def _class_weights(
    setting: str | dict[str, float], label: LabelPlan, sums: dict[str, float]
) -> dict[str, float]:
    """Returns the weight of each class, in their order."""
    if isinstance(setting, str):
        if without := [name for name, weight in sums.items() if not weight > 0]:
            raise BadInputError(
                f'trainer.class_weights = "balanced": the weights of the class {without[0]!r} add up to 0. '
                "Correct them, or give the weight of each class."
            )
        return {name: sum(sums.values()) / (len(sums) * weight) for name, weight in sums.items()}
    for name in setting:
        if name not in sums:
            near = nearest_first(name, list(sums))[:_MAX_SHOWN]
            raise BadInputError(
                f"trainer.class_weights: the label {label.column!r} has no class {name!r}. Did you mean "
                f"{near[0]!r}? Classes: {', '.join(near)}."
            )
    if missing := [name for name in sums if name not in setting]:
        raise BadInputError(
            f"trainer.class_weights has no weight for {', '.join(map(repr, missing))}. Add one; 1 leaves the "
            "class as it is."
        )
    return {name: setting[name] for name in sums}
