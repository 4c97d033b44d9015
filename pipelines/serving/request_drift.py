"""Compares rows of requests with the data of the training, by the ExampleValidator's distances."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.example_validator.distributions import (
    Shift,
    compare_missing,
    compare_readings,
    compare_values,
    num_present,
)
from components.parsed_columns import add_reading, readings
from pipelines.config.evaluator import ExampleValidatorConfig
from pipelines.config.load import is_of_tfx_pipeline
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.baseline import statistics_folder
from pipelines.root.records import RunRecord
from pipelines.serving.saved_model import Column

Row = Mapping[str, Any]
"""Values of a row by column: a number or a text, or a list of them. A column that is absent is missing."""

MIN_ROWS = 100
"""Number of rows from which their distribution is compared; fewer say nothing about it."""

_NUM_QUANTILES = 100
_FILE = "Split-train/FeatureStats.pb"


@dataclass(frozen=True)
class ColumnDrift:
    column: str
    # `missing` for the share of rows without a value; `unread` for that of the cells of numbers or
    # dates that cannot be parsed; for the values `l_infinity` or `jensen_shannon`.
    measure: str
    shift: Shift  # Shift from the training data to the requests


class TrainingData:
    def __init__(self, num_rows: int, columns: Mapping[str, Any]):
        self.num_rows = num_rows
        self._present = {}
        for name, column in columns.items():
            statistics = getattr(column, column.WhichOneof("stats") or "num_stats")
            self._present[name] = num_present(statistics.common_stats)
        self.columns = columns

    @classmethod
    def read_version(cls, root: Root, version: int) -> "TrainingData":
        """Returns the statistics of a version's training split, without columns that always change."""
        for number, origin in root.versions.origins():
            if number == version:
                file = statistics_folder(root, origin.pipeline_run_id) / _FILE
                if file.exists():
                    content = file.read_bytes()
                    statistics = statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
                    return cls._comparable(statistics.datasets[0], *_moving(root, origin.pipeline_run_id))
        raise BadInputError(
            f"The statistics of the data that version {version} was trained on are not in {root}."
        )

    @classmethod
    def _comparable(cls, dataset: Any, moving: Collection[str], dates: Collection[str]) -> "TrainingData":
        columns = {feature.name or ".".join(feature.path.step): feature for feature in dataset.features}
        kept = {
            name: column
            for name, column in columns.items()
            if name not in moving and (name not in dates or readings(column))
        }
        return cls(int(dataset.num_examples), kept)

    def drift(self, rows: Sequence[Row], columns: Mapping[str, Column]) -> list[ColumnDrift]:
        """Returns the drift of each column that is known; empty without rows."""
        drift = []
        for name, column in columns.items():
            training = self.columns.get(name)
            if training is None or not rows or not self.num_rows:
                continue
            present = [row[name] for row in rows if name in row]
            missing = compare_missing(
                1 - self._present[name] / self.num_rows,
                1 - len(present) / len(rows),
                self.num_rows,
                len(rows),
            )
            drift.append(ColumnDrift(name, "missing", missing))
            values = []
            for value in present:
                values += value if isinstance(value, list) else [value]
            requests = _statistics(values, training.type)
            if requests is None:
                continue
            if column.format is not None:
                for quantity, parsed in column.format.parse(pyarrow.array(values)).items():
                    numbers = _statistics(parsed, training.INT) or type(training)()
                    add_reading(requests, column.format.describe(), quantity, numbers)
            shifts: dict[str, Shift | None] = {"values": compare_values(training, requests)}
            if column.format is not None or readings(training):
                shifts = {**compare_readings(training, requests)}
            drift += [
                ColumnDrift(name, "unread" if quantity == "unread" else shift.measure, shift)
                for quantity, shift in shifts.items()
                # The newest rows are of one hour or a few; the training data cover whole days.
                if shift and quantity != "hours"
            ]
        return drift


def drift_limits(root: Root, version: int) -> dict[str, float]:
    """Returns the limits of the version's run, above which a column has drifted, by measure."""
    settings = ExampleValidatorConfig()
    for number, origin in root.versions.origins():
        if number == version and (record := root.records.read(origin.pipeline_run_id)):
            settings = _validation(record)
    return {
        "missing": settings.l_infinity,
        "unread": settings.l_infinity,
        "l_infinity": settings.l_infinity,
        "jensen_shannon": settings.jensen_shannon,
    }


def _moving(root: Root, run_id: str) -> tuple[set[str], set[str]]:
    """Returns the columns that the ExampleValidator of a run does not compare either, and those of dates."""
    record = root.records.read(run_id)
    if record is None:
        return set(), set()
    kinds = {
        kind: {column["name"] for column in record.columns if column["kind"] == kind}
        for kind in ("id", "date")
    }
    return kinds["id"] | {*_validation(record).moving}, kinds["date"]


def _validation(record: RunRecord) -> ExampleValidatorConfig:
    if is_of_tfx_pipeline(record.config):  # its limits are in its schema, as far as it has any
        return ExampleValidatorConfig()
    return record.validated_config().example_validator


def _statistics(values: Sequence[Any], kind: int) -> Any:
    """Returns the statistics that the distances need, as TFDV would compute them, for a type of column.

    Numbers that are not finite are left out. None without a value.
    """
    statistics = statistics_pb2.FeatureNameStatistics(type=kind)
    if kind == statistics.STRING:
        if not values:
            return None
        texts = statistics.string_stats
        texts.common_stats.num_non_missing = len(values)
        counts = Counter(map(str, values))
        texts.unique = len(counts)
        for label, count in counts.most_common():
            texts.rank_histogram.buckets.add(label=label, sample_count=count)
        return statistics
    # A tf.Example has 32 bits for a number: frequent values must be those of the training data. A parsed
    # number has 64 bits.
    with np.errstate(over="ignore"):
        array = np.asarray(values, np.float32 if kind == statistics.FLOAT else np.float64)
    array = array[np.isfinite(array)].astype(np.float64)
    if not array.size:
        return None
    numbers = statistics.num_stats
    numbers.common_stats.num_non_missing = array.size
    numbers.median = float(np.median(array))
    histogram = numbers.histograms.add(type=statistics_pb2.Histogram.QUANTILES)
    edges = np.quantile(array, np.linspace(0, 1, _NUM_QUANTILES + 1), method="inverted_cdf")
    for low, high in pairwise(edges):
        histogram.buckets.add(low_value=low, high_value=high, sample_count=array.size / _NUM_QUANTILES)
    return statistics
