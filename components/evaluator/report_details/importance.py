"""How much a model needs each feature: its loss grows when the feature's values change rows.

A bounded number of examples is looked at, for a bounded time. All features but one stay as they are, so
one that another feature can stand for looks less important than it is.
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
from components.evaluator.gate.outcomes import losses, outcomes
from components.evaluator.metrics.eval_model import EvalModel
from components.evaluator.metrics.extraction import ModelToEvaluate, load_models

_LOGGER = logging.getLogger(__name__)

MAX_ROWS = 500
"""Examples that are looked at, at most."""

MAX_SECS = 1.0
"""After this time no further feature is begun."""

_MIN_ROWS = 20
_ROWS_IN_A_CALL = 4_096
_FEWEST_ROWS = 100  # of many features: each is looked at with as few
_READ_FOR_ONE = 4  # rows that are read for each that is looked at, so that they are from all over
_CONFIDENCE = 0.95
_ROUNDING = 1e-6
_SEED = 20_260_131

Predict = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


@dataclass(frozen=True)
class Row:
    """A serialized tf.Example in parts that can be exchanged.

    Attributes:
        parts: By feature, its entry in the map of features, as bytes.
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
        """Returns the example, with one feature as another row has it; or without it, as that one."""
        parts = {**self.parts, name: other.parts.get(name, b"")} if other else self.parts
        body = b"".join(parts.values())  # a map is a sequence of entries: parts add up to a message
        return b"\x0a" + _varint(len(body)) + body  # field 1 of tf.Example, by its length


class Importance(beam.DoFn):
    """Turns the list of all files into the importances of features, as JSON has them.

    Args:
        models: As of `ReadAndEvaluate`; the first one is looked at.
        models_of: As there.
        gate: Says what kind of problem it is.
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
        """Yields what was found; nothing where no loss is known, or there are too few examples."""
        model = load_models(self._models_of, self._models)[self._models[0].name]
        serialized = read_sample(sorted(paths), MAX_ROWS)
        if len(serialized) < _MIN_ROWS:
            return
        try:
            yield from self._of(model, serialized)
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            # The evaluation of all examples says so, too, unless it is of the exchanged values alone.
            _LOGGER.warning(
                "The importance of features is not known: the model cannot take the examples: %s",
                error,
            )

    def _of(self, model: EvalModel, serialized: npt.NDArray[Any]) -> Iterator[dict[str, Any]]:
        # One call of the model where that is enough: the evaluation itself must not take longer for it.
        num_features = len(Row.parse(serialized[0]).parts)
        size = max(_FEWEST_ROWS, _ROWS_IN_A_CALL // max(1, num_features))
        serialized = serialized[:: max(1, len(serialized) // size)][:size]
        evaluated = model(serialized)
        kind = self._gate.problem_type_of(model.prediction)

        def loss(predictions: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
            found = outcomes(evaluated.labels, {"": predictions}, None, kind)
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
    """Returns some serialized examples of the files: every k-th of those that are read.

    Args:
        paths: TFRecord files.
        size: How many at most.
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
    """Returns by how much the loss grows for each feature, the most important first.

    Args:
        serialized: Examples `[n]`.
        predict: Returns the predictions of examples `[n * k]`.
        loss: Returns the loss of each of the `n` examples from their predictions.
        usual: The loss as they are, `[n]`.
        clock: Returns seconds.
    """
    start = clock()
    rows = [Row.parse(example) for example in serialized]
    names = sorted({name for row in rows for name in row.parts})
    size = len(rows)
    # A shift by a random number of rows exchanges every row, which a random order does not.
    order = np.random.default_rng(_SEED).permutation(size)
    other = dict(zip(order, np.roll(order, 1), strict=True))
    at_a_time = max(1, _ROWS_IN_A_CALL // size)
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
            growth[np.abs(growth) < _ROUNDING] = 0.0  # another batch is summed in another order
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
    """Returns a number as protobuf writes it: seven bits a byte, the lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(parts) + bytes([number])
