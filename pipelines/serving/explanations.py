"""Explains the predictions of any model that predicts rows: what each raw column contributes."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from components.evaluator.report_details.shapley import Indices, log_odds, number_cells, shapley_values
from components.pusher.provenance import read_provenance
from pipelines.errors import BadInputError, shown
from pipelines.serving.cells import Cells, listed
from pipelines.serving.model import Model, class_scores, plain_columns, signature_inputs

NUM_BACKGROUND = 32
"""Number of rows of a file to compare with, where a run has left none."""


@dataclass(frozen=True)
class Explanation:
    """Contributions of columns to predictions; with `base`, they add up to `score`.

    Attributes:
        base: Mean score of the background rows, `[rows]`.
        score: Log-odds of `classes`, or the predicted number, `[rows]`.
        classes: Class that is explained in each row; None in a regression.
        contributions: Contribution by column, `[rows]` each.
    """

    base: Any
    score: Any
    classes: Any
    contributions: dict[str, Any]

    def strongest(self, number: int) -> dict[str, Any]:
        """Returns the strongest contributions of each row and the sum of the others, as columns."""
        names = np.array(list(self.contributions), object)
        values = np.stack(list(self.contributions.values()), axis=1)
        order = np.argsort(-np.abs(values), axis=1, kind="stable")
        ranked = np.take_along_axis(values, order, axis=1)
        number = min(number, len(names))
        columns = {} if self.classes is None else {"explained_class": self.classes}
        columns["base"] = self.base
        for place in range(number):
            columns[f"column_{place + 1}"] = names[order[:, place]]
            columns[f"contribution_{place + 1}"] = ranked[:, place]
        return {**columns, "contribution_others": ranked[:, number:].sum(axis=1)}


def explain(
    model: Model,
    cells: Cells,
    num_rows: int,
    background: Cells,
    num_background: int,
    of_class: str | None = None,
) -> Explanation:
    """Explains rows whose cells were cast; see `Model.explain`."""
    if not num_background:
        raise BadInputError(
            "An explanation compares with background rows, and none were found for this model. A run with "
            "a ServingCheck stores them in its root. Pass background=, for example 30 rows of the training "
            "data."
        )
    signature = model.fast_signature()
    names = sorted(model.columns)  # the random orders depend on this order
    pool = [
        [*cells.get(name, [None] * num_rows), *background.get(name, [None] * num_background)]
        for name in names
    ]
    numbered = number_cells(
        [[tuple(cell) if type(cell) is list else cell for cell in column] for column in pool]
    )

    def outputs(mixed: Indices) -> dict[str, Any]:
        columns = zip(names, pool, mixed.T.tolist(), strict=True)
        mixed_cells = {name: [column[row] for row in rows] for name, column, rows in columns}
        return model.run(signature.name, signature_inputs(mixed_cells, signature, len(mixed)))

    def score(mixed: Indices, class_id: int | None) -> Any:
        predicted = outputs(mixed)
        scores = class_scores(predicted, signature.method)
        if scores is not None and class_id is not None:
            return log_odds(scores[0], class_id)
        return _number(plain_columns(predicted, signature.method))

    classes = _class_names(class_scores(outputs(numbered[-1:]), signature.method))
    if of_class is not None and of_class not in classes:
        raise BadInputError(
            f"of_class = {shown(repr(of_class))} is not a class of this model. "
            f"Its classes: {listed(classes)}."
        )
    if of_class is None and len(classes) == 2:
        of_class = classes[1]
    explained: Any = np.full(num_rows, of_class, object)
    if of_class is None and classes:
        explained = model.predict_cells(cells, num_rows)["class"]
    base, values = np.zeros(num_rows), np.zeros((num_rows, len(names)))
    for name in dict.fromkeys(explained.tolist()):
        # A class that is None is that of a NaN.
        class_id = classes.index(name or classes[0]) if classes else None
        of_name = explained == name
        rows = np.concatenate([np.flatnonzero(of_name), np.arange(num_rows, len(numbered))])
        base[of_name], values[of_name] = shapley_values(
            partial(score, class_id=class_id), numbered[rows], int(of_name.sum())
        )
    contributions = dict(zip(names, values.T, strict=True))
    return Explanation(base, base + values.sum(axis=1), explained if classes else None, contributions)


def _class_names(scores: tuple[Any, Any, Any] | None) -> list[str]:
    if scores is None:
        return []
    if scores[1] is None:
        return [str(number) for number in range(scores[0].shape[1])]
    return [name.decode(errors="replace") for name in scores[1][0].tolist()]


def _number(columns: Mapping[str, Any]) -> Any:
    values = columns.get("value", next(iter(columns.values())))
    if values.dtype == object or ("value" not in columns and len(columns) > 1):
        names = listed(sorted(columns))
        raise BadInputError(f"The model predicts {names}: only a class or one number is explained.")
    return values


def background_rows(model: Model) -> list[dict[str, Any]]:
    """Returns the evaluation rows that the run that pushed a model has left in the root; [] without them."""
    origin = read_provenance(str(model.folder.parent), model.version) if model.root else None
    if model.root is None or origin is None:
        return []
    details = model.root.details(origin.pipeline_run_id).read("serving_check") or {}
    return [_values(model, base64.b64decode(example)) for example in details.get("background", ())]


def _values(model: Model, serialized: bytes) -> dict[str, Any]:
    features = tf.train.Example.FromString(serialized).features.feature
    row = {}
    for name, column in model.columns.items():
        kind = features[name].WhichOneof("kind") if name in features else None
        cells = list(getattr(features[name], kind).value) if kind else []
        # A cell that cannot be read counted as missing in the training, too.
        is_read = column.format is None or all(column.format.reads(cell.decode()) for cell in cells)
        row[name] = cells if is_read else None
    return row
