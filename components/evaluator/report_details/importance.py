"""Importance of features: the growth of a model's loss when a feature's values are permuted across rows.

The number of examples and the time are limited. All other features stay as they are, so a feature that
another one can replace looks less important than it is.
"""

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
from components.evaluator.gate.labelled_predictions import LabelledPredictions, losses
from components.evaluator.metrics.eval_model import EvalModel
from components.evaluator.metrics.extraction import ModelToEvaluate, load_models

_LOGGER = logging.getLogger(__name__)

MAX_ROWS = 500
"""Maximum number of examples to evaluate."""

MAX_SECS = 1.0
"""Time after which no further feature is started."""

_MIN_ROWS = 20
_ROWS_IN_A_CALL = 4_096
# The first call of a wide table would take many times MAX_SECS otherwise.
_CELLS_IN_A_CALL = 1_000_000
_FEWEST_ROWS = 100  # used for many features
_READ_FOR_ONE = 4  # rows to read for each row used, so that the sample covers all files
_CONFIDENCE = 0.95
_ROUNDING = 1e-6
_SEED = 20_260_131

Predict = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


@dataclass(frozen=True)
class Row:
    """A serialized tf.Example in parts that can be exchanged.

    Attributes:
        parts: Serialized entry in the map of features, by feature name.
    """

    parts: dict[str, bytes]

    @classmethod
    def parse(cls, serialized: bytes) -> "Row":
        """Returns the parts of an example."""
        features = tf.train.Example.FromString(serialized).features.feature
        return cls(
            {
                name: tf.train.Features(feature={name: value}).SerializeToString()
                for name, value in features.items()
            }
        )

    def serialize(self, name: str = "", other: "Row | None" = None) -> bytes:
        """Returns the example with one feature's value, or its absence, from another row."""
        parts = {**self.parts, name: other.parts.get(name, b"")} if other else self.parts
        body = b"".join(
            parts.values()
        )  # a map is a sequence of entries, so the parts join to a message
        return (
            b"\x0a" + _varint(len(body)) + body
        )  # field 1 of tf.Example, prefixed with its length


class Importance(beam.DoFn):
    """Turns the list of all files into the importances of features, in JSON form.

    Args:
        models: Models as for `ReadAndEvaluate`; only the first one is used.
        models_of: Cache of the models as for `ReadAndEvaluate`.
        gate: Settings with the problem type.
        clock: Returns seconds.
    """

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
        """Yields the importances; nothing if the loss is not known or there are too few examples."""
        model = load_models(self._models_of, self._models)[self._models[0].name]
        serialized = read_sample(sorted(paths), MAX_ROWS)
        if len(serialized) < _MIN_ROWS:
            return
        try:
            yield from self._of(model, serialized)
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            # The evaluation of all examples reports this, too, unless only the exchanged values cause it.
            _LOGGER.warning(
                "The importance of features is unknown: the model cannot read the examples: %s",
                error,
            )

    def _of(self, model: EvalModel, serialized: npt.NDArray[Any]) -> Iterator[dict[str, Any]]:
        # One model call if the rows fit into it: importances must not take longer than the evaluation itself.
        num_features = len(Row.parse(serialized[0]).parts)
        size = max(_FEWEST_ROWS, _ROWS_IN_A_CALL // max(1, num_features))
        serialized = serialized[:: max(1, len(serialized) // size)][:size]
        evaluated = model(serialized)
        kind = self._gate.problem_type_of(model.prediction)

        def loss(predictions: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
            found = LabelledPredictions.of(evaluated.labels, {"": predictions}, None, kind)
            return losses(found, found.answers[""]) if "" in found.answers else None

        usual = loss(evaluated.predictions)
        if usual is None or not np.isfinite(usual).all():
            return
        yield permutation_importance(
            serialized,
            model.predictions,
            lambda predictions: _known(loss(predictions), len(usual)),
            usual,
            self._clock,
        )


def read_sample(paths: Sequence[str], size: int) -> npt.NDArray[Any]:
    """Returns some serialized examples of the files: every k-th of the rows read.

    Args:
        paths: TFRecord files.
        size: Maximum number of examples.
    """
    records: list[bytes] = []
    of_each = -(-size * _READ_FOR_ONE // max(1, len(paths)))
    for path in paths:
        kind = "GZIP" if path.endswith(".gz") else ""
        dataset = tf.data.TFRecordDataset(path, compression_type=kind).take(of_each)
        records.extend(dataset.as_numpy_iterator())
    step = max(1, len(records) // size)
    return np.array(records[::step][:size], object)


def permutation_importance(
    serialized: npt.NDArray[Any],
    predict: Predict,
    loss: Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]],
    usual: npt.NDArray[np.float64],
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Returns the growth of the loss for each feature, the most important feature first.

    Args:
        serialized: Examples `[n]`.
        predict: Returns the predictions of examples `[n * k]`.
        loss: Returns the loss of each of the `n` examples from their predictions.
        usual: Loss on the unchanged examples, `[n]`.
        clock: Returns seconds.
    """
    start = clock()
    rows = [Row.parse(example) for example in serialized]
    names = sorted({name for row in rows for name in row.parts})
    size = len(rows)
    # A shift by a random number of rows moves every row; a random order would leave some in place.
    order = np.random.default_rng(_SEED).permutation(size)
    other = dict(zip(order, np.roll(order, 1), strict=True))
    rows_in_a_call = min(_ROWS_IN_A_CALL, _CELLS_IN_A_CALL // max(1, len(names)))
    at_a_time = max(1, rows_in_a_call // size)
    found: list[dict[str, Any]] = []
    left_out: list[str] = []
    for first in range(0, len(names), at_a_time):
        group = names[first : first + at_a_time]
        if clock() - start > MAX_SECS:
            left_out += group
            continue
        changed = [
            row.serialize(name, rows[other[number]])
            for name in group
            for number, row in enumerate(rows)
        ]
        predictions = predict(np.array(changed, object))
        for number, name in enumerate(group):
            growth = loss(predictions[number * size : (number + 1) * size]) - usual
            growth[np.abs(growth) < _ROUNDING] = (
                0.0  # batches of another size are summed in another order
            )
            finite = growth[np.isfinite(growth)]
            difference = intervals.mean_difference(
                finite, np.zeros(len(finite)), np.ones(len(finite)), _CONFIDENCE
            )
            found.append(
                {
                    "feature": name,
                    "growth": _number(difference.value),
                    "low": _number(difference.low),
                    "high": _number(difference.high),
                }
            )
    found.sort(key=lambda item: -(item["growth"] or 0.0))
    return {
        "features": found,
        "left_out": left_out,
        "num_rows": size,
        "loss": float(usual.mean()),
        "seconds": round(clock() - start, 3),
    }


def _known(values: npt.NDArray[np.float64] | None, size: int) -> npt.NDArray[np.float64]:
    return np.full(size, np.nan) if values is None else values


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _varint(number: int) -> bytes:
    """Returns a number in protobuf's encoding: seven bits a byte, the lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(parts) + bytes([number])
