"""Importance of features: the growth of a model's loss when a feature's values are permuted across rows.

It comes with the rows with the largest loss, and the columns that contributed most to their predictions.
The time is limited. Rows of rare classes are preferred, and weighted so that the growth is that of all rows.
All other features stay as they are, so a feature that other features can replace looks less important than it
is.
"""

import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from apache_beam.utils import shared

from components.evaluator.gate import intervals
from components.evaluator.gate.gate import Gate
from components.evaluator.gate.labelled_predictions import (
    MIN_PROBABILITY,
    LabelledPredictions,
    LabelTally,
    Values,
    losses,
    trivial_answers,
)
from components.evaluator.metrics.eval_model import EvalModel, Evaluated
from components.evaluator.metrics.extraction import ModelToEvaluate, load_models
from components.evaluator.report_details.shapley import Indices, log_odds, number_cells, shapley_values
from components.example_gen.example_encoder import varint

_LOGGER = logging.getLogger(__name__)

MAX_ROWS = 50_000
"""Maximum number of examples to read."""

MAX_SECS = 4.0
"""Time for the changed examples; a quarter of it for the unchanged ones."""

_MAX_BYTES = 100_000_000  # to read
_MIN_ROWS = 20
_FIRST_ROWS = 256  # measured for all features before there are more rows for any of them
_ROWS_IN_A_CALL = 4_096
# The first call of a wide table would take many times MAX_SECS otherwise.
_CELLS_IN_A_CALL = 1_000_000
_ROWS_IN_A_BATCH = 128  # to read; few, because rows may be large
_READ_FOR_ONE = 4  # rows to read for each row used, so that the sample covers all files
_CONFIDENCE = 0.95
_ROUNDING = 1e-6
_SEED = 20_260_131

_NUM_ERRORS = 5
_NUM_BACKGROUND = 16
_NUM_CONTRIBUTIONS = 3
_MAX_SECS_OF_ERRORS = 1.0
_MAX_COLUMNS = 300  # a row of more takes many seconds
_MAX_LETTERS = 60  # of a cell

Predict = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


@dataclass(frozen=True)
class Row:
    """A serialized tf.Example in parts that can be exchanged."""

    parts: dict[str, bytes]  # Serialized entry in the map of features, by feature name

    @classmethod
    def parse(cls, serialized: bytes) -> "Row":
        features = tf.train.Example.FromString(serialized).features.feature
        return cls({name: _entry(name, value) for name, value in features.items()})

    def serialize(self, name: str = "", other: "Row | None" = None) -> bytes:
        """Returns the example with the value of one feature, or its absence, from another row."""
        parts = {**self.parts, name: other.parts.get(name, b"")} if other else self.parts
        # A map is a sequence of entries, so the parts join to a message: field 1 of tf.Example.
        return _field(1, b"".join(parts.values()))


class Importance(beam.DoFn):
    """Turns the list of all files into the importances of features for the first model, in JSON form."""

    def __init__(
        self,
        models: Sequence[ModelToEvaluate],
        models_of: shared.Shared,
        gate: Gate,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._models = tuple(models)
        self._models_of = models_of
        self._gate = gate
        self._clock = clock

    def process(self, paths: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields the importances; nothing if the loss is unknown or there are too few examples."""
        model = load_models(self._models_of, self._models)[self._models[0].name]
        serialized = read_sample(sorted(paths), MAX_ROWS)
        if len(serialized) < _MIN_ROWS:
            return
        try:
            yield from self._measure(model, serialized)
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            # The evaluation of all examples reports this, too, unless only the exchanged values cause it.
            _LOGGER.warning(
                "The importance of features is unknown: the model cannot read the examples: %s", error
            )

    def _measure(self, model: EvalModel, serialized: npt.NDArray[Any]) -> Iterator[dict[str, Any]]:
        start = self._clock()
        batches: list[Evaluated] = []
        for first in range(0, len(serialized), _ROWS_IN_A_CALL):
            if batches and self._clock() - start > MAX_SECS / 4:
                break
            batches.append(model(serialized[first : first + _ROWS_IN_A_CALL]))
        labels = np.concatenate([batch.labels for batch in batches])
        predictions = np.concatenate([batch.predictions for batch in batches])
        kind = self._gate.prediction_problem_type(model.prediction)
        weights = model.weights(serialized[: len(labels)])
        labelled = LabelledPredictions.from_batch(labels, {"": predictions}, weights, kind)
        if "" not in labelled.answers or not labelled.weights.sum() > 0:
            return
        usual = losses(labelled, labelled.answers[""])
        if not np.isfinite(usual).all():
            return

        def loss(rows: Indices, changed: npt.NDArray[Any]) -> Values:
            part = LabelledPredictions.from_batch(labels[rows], {"": changed}, None, kind)
            return losses(part, part.answers[""]) if part.answers else np.full(len(rows), np.nan)

        classes: Indices = np.zeros(len(usual), np.int64)
        if labelled.problem_type != "regression":
            classes = np.unique(labelled.labels, return_inverse=True)[1]
        importance = permutation_importance(
            serialized[: len(usual)], model.predictions, loss, usual, classes, self._clock, labelled.weights
        )
        tally = LabelTally.from_labels(labelled.labels, labelled.weights, labelled.problem_type)
        trivial = losses(labelled, trivial_answers(tally, labelled))
        class_names = model.classes(serialized[:1])
        names = [] if class_names is None else [_text(name) for name in class_names]
        worst = worst_errors(serialized, predictions, labelled, usual, model.predictions, names, self._clock)
        trivial_loss = float(np.average(trivial, weights=labelled.weights))
        yield {**importance, "trivial_loss": trivial_loss, "worst": worst}


def read_sample(paths: Sequence[str], size: int) -> npt.NDArray[Any]:
    """Returns some serialized examples of the files, taken at equal distances."""
    records: list[bytes] = []
    num_files = max(1, len(paths))
    rows_of_each, bytes_of_each = -(-size * _READ_FOR_ONE // num_files), _MAX_BYTES // num_files
    for path in paths:
        kind = "GZIP" if path.endswith(".gz") else ""
        dataset = tf.data.TFRecordDataset(path, compression_type=kind).take(rows_of_each)
        num_bytes = 0
        # One by one, TensorFlow would take 0.2 ms for each.
        batches = dataset.batch(_ROWS_IN_A_BATCH).as_numpy_iterator()
        for record in itertools.chain.from_iterable(batches):
            records.append(record)
            num_bytes += len(record)
            if num_bytes > bytes_of_each:
                break
    step = max(1, len(records) // size)
    return np.array(records[::step][:size], object)


def permutation_importance(
    serialized: npt.NDArray[Any],
    predict: Predict,
    loss: Callable[[Indices, npt.NDArray[Any]], Values],
    usual: Values,
    classes: Indices,
    clock: Callable[[], float],
    example_weights: Values | None = None,
) -> dict[str, Any]:
    """Returns the growth of the loss for each feature, the most important feature first."""
    start = clock()
    size = len(serialized)
    example_weights = np.ones(size) if example_weights is None else example_weights
    parsed = (tf.train.Example.FromString(example) for example in serialized)
    names = sorted({name for example in parsed for name in example.features.feature})
    # A shift by a random number of rows moves every row; a random order would leave some in place. The values
    # come from all rows, so that they are distributed as in the data although the sample is not.
    order = np.random.default_rng(_SEED).permutation(size)
    donors: Indices = np.empty(size, np.int64)
    donors[order] = np.roll(order, 1)
    sample = _in_order_of_sampling(order, classes)
    parse = functools.cache(lambda row: Row.parse(serialized[row]))
    rows_in_a_call = min(_ROWS_IN_A_CALL, max(_FIRST_ROWS, _CELLS_IN_A_CALL // max(1, len(names))))
    growth: dict[str, list[Values]] = {}
    done, num_rows = 0, min(size, _FIRST_ROWS)
    while num_rows > 0:
        rows = sample[done : done + num_rows]
        at_a_time = rows_in_a_call // num_rows
        for first in range(0, len(names), at_a_time):
            if not done and clock() - start > MAX_SECS:
                break
            group = names[first : first + at_a_time]
            changed = [parse(row).serialize(name, parse(donors[row])) for name in group for row in rows]
            predictions = np.split(predict(np.array(changed, object)), len(group))
            for name, values in zip(group, predictions, strict=True):
                growth.setdefault(name, []).append(loss(rows, values) - usual[rows])
        done += num_rows
        elapsed = clock() - start
        affordable = int(done * (MAX_SECS - elapsed) / elapsed) if elapsed > 0 else size
        num_rows = min(size - done, affordable, rows_in_a_call)
    rows = sample[:done]
    rows_for_one = np.bincount(classes) / np.maximum(1, np.bincount(classes[rows]))
    weights = rows_for_one[classes[rows]] * example_weights[rows]
    features = [_feature(name, np.concatenate(parts), weights) for name, parts in growth.items()]
    features.sort(key=lambda item: -(item["growth"] or 0.0))
    return {
        "features": features,
        "left_out": [name for name in names if name not in growth],
        "num_rows": done,
        "loss": float(np.average(usual, weights=example_weights)),
        "seconds": round(clock() - start, 3),
    }


def _in_order_of_sampling(order: Indices, classes: Indices) -> Indices:
    """Returns rows in an order of which each beginning is a sample.

    It has as many rows of a class as the root of its size: equal numbers would leave few rows of a
    class that has half of them, and in proportion few of a rare one.

    Source: the power allocation of Bankier (1988).
    """
    by_class = order[np.argsort(classes[order], kind="stable")]
    sizes = np.bincount(classes)
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(len(order)) - starts[classes[by_class]]
    return by_class[np.argsort((rank + 0.5) / np.sqrt(sizes[classes[by_class]]), kind="stable")]


def worst_errors(
    serialized: npt.NDArray[Any],
    predictions: npt.NDArray[Any],
    labelled: LabelledPredictions,
    row_losses: Values,
    predict: Predict,
    classes: Sequence[str],
    clock: Callable[[], float],
) -> list[dict[str, Any]]:
    """Returns the rows with the largest losses: label, prediction, and the columns that contributed most.

    `probability` is that of the label. The contributions are to the log-odds of `explained`, the second of
    two classes or the predicted class of several; in a regression, to the number `prediction`.
    """
    start = clock()
    num_rows = len(row_losses)
    chosen = serialized[: num_rows : max(1, num_rows // _NUM_BACKGROUND)][:_NUM_BACKGROUND]
    background = [Row.parse(example) for example in chosen]
    errors: list[dict[str, Any]] = []
    for row in np.argsort(-np.where(labelled.weights > 0, row_losses, -1.0), kind="stable")[:_NUM_ERRORS]:
        label, answer = labelled.labels[row], float(labelled.answers[""][row, 0])
        error: dict[str, Any] = {"loss": float(row_losses[row]), "contributions": []}
        class_id = None
        if labelled.problem_type == "regression":
            error.update(label=float(label), prediction=answer)
        else:
            is_binary = labelled.problem_type == "binary"
            class_id = 1 if is_binary else int(predictions[row].argmax())
            error["label"], error["explained"] = (
                classes[index] if index < len(classes) else str(index) for index in (int(label), class_id)
            )
            error["probability"] = 1.0 - answer if is_binary and not label else answer
        errors.append(error)
        if len(errors) == 1 or clock() - start < _MAX_SECS_OF_ERRORS:
            error["contributions"] = _contributions(serialized[row], background, predict, class_id)
    return errors


def _contributions(
    serialized: bytes, background: Sequence[Row], predict: Predict, class_id: int | None
) -> list[dict[str, Any]]:
    rows = [Row.parse(serialized), *background]
    names = sorted({name for row in rows for name in row.parts})
    if len(names) > _MAX_COLUMNS:
        return []
    columns = [[row.parts.get(name, b"") for row in rows] for name in names]

    def score(mixed: Indices) -> Values:
        taken = zip(columns, mixed.T.tolist(), strict=True)
        cells = zip(*([column[row] for row in numbers] for column, numbers in taken), strict=True)
        values = predict(np.array([_field(1, b"".join(parts)) for parts in cells], object))
        if class_id is None:
            return values.reshape(-1)
        if values.ndim == 1:
            values = np.stack([1.0 - values, values], axis=1)
        return log_odds(np.clip(values, MIN_PROBABILITY, 1.0), class_id)

    _, (contributions,) = shapley_values(score, number_cells(columns), 1)
    features = tf.train.Example.FromString(serialized).features.feature
    return [
        {"column": names[column], "cell": _cell(features.get(names[column])), "value": contributions[column]}
        for column in np.argsort(-np.abs(contributions))[:_NUM_CONTRIBUTIONS]
        if abs(contributions[column]) > _ROUNDING
    ]


def _cell(feature: Any) -> str | None:
    kind = feature.WhichOneof("kind") if feature is not None else None
    values = getattr(feature, kind).value if kind else ()
    return ", ".join(map(_text, values))[:_MAX_LETTERS] or None


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _feature(name: str, growth: Values, weights: Values) -> dict[str, Any]:
    growth[np.abs(growth) < _ROUNDING] = 0.0  # batches of another size are summed in another order
    is_finite = np.isfinite(growth)
    growth, weights = growth[is_finite], weights[is_finite]
    difference = intervals.mean_difference(growth, np.zeros(len(growth)), weights, _CONFIDENCE)
    return {
        "feature": name,
        "growth": intervals.finite(difference.value),
        "low": intervals.finite(difference.low),
        "high": intervals.finite(difference.high),
    }


def _entry(name: str, value: Any) -> bytes:
    # Written by hand: a tf.train.Features for each value takes four times as long.
    return _field(1, _field(1, name.encode()) + _field(2, value.SerializeToString()))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content  # 2: prefixed with its length
