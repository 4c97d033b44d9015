"""Parsed columns: statistics of the numbers and dates that cells stand for.

TFDV counts how often each text occurs, and in tf.Examples `$1,234.50` and `27.02.1956` are text. For parsed
columns, StatisticsGen also describes the values. They are in the column's `custom_stats`, which TFDV and
SchemaGen ignore.
"""

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from tensorflow_metadata.proto.v0 import statistics_pb2

_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class ParsedColumns:
    """Columns whose cells stand for numbers or dates, and how to parse them.

    Attributes:
        parse_fn: Import path of a function: cells (pyarrow strings without nulls), format -> values
            by quantity, float64 arrays of the same length, with NaN where a cell has no value. The quantity
            is `numbers`; for dates, `days` since 1970, and `hours` of the day if they have times.
        formats: Formats of each column, JSON values by their descriptions. The format of these data comes
            first; a second format is that of the data to compare with.
    """

    parse_fn: str
    formats: Mapping[str, Mapping[str, Any]]

    @staticmethod
    def from_json(text: str) -> "ParsedColumns":
        """Returns the object whose `to_json` is `text`."""
        return ParsedColumns(**json.loads(text))

    def to_json(self) -> str:
        """Returns the fields as JSON, for an execution property."""
        return json.dumps(asdict(self))

    def add_values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a batch of examples with one more column for each quantity in each format."""
        module, _, function = self.parse_fn.rpartition(".")
        parse = getattr(importlib.import_module(module), function)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, formats in self.formats.items():
            lists = columns.get(name)
            if lists is None or pa.types.is_null(lists.type):
                continue
            rows: Any = np.repeat(np.arange(len(lists)), lists.value_lengths().fill_null(0).to_numpy())
            cells = lists.flatten().cast(pa.string())
            for description, cell_format in formats.items():
                for quantity, values in parse(cells, cell_format).items():
                    is_known = np.isfinite(values)
                    counts = np.bincount(rows[is_known], minlength=len(lists))
                    columns[_SEPARATOR.join((name, description, quantity))] = pa.ListArray.from_arrays(
                        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
                        values[is_known],
                        # TFDV would count an empty list as a value.
                        mask=pa.array(counts == 0),
                    )
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def nest(self, statistics: statistics_pb2.DatasetFeatureStatisticsList) -> None:
        """Moves the statistics of the columns that `add_values` added into those of the parsed columns."""
        for dataset in statistics.datasets:
            features = {feature.path.step[0]: feature for feature in dataset.features}
            for name, formats in self.formats.items():
                for description in formats:
                    prefix = _SEPARATOR.join((name, description, ""))
                    for key in sorted(key for key in features if key.startswith(prefix)):
                        add_reading(features[name], description, key.removeprefix(prefix), features.pop(key))
            kept = list(features.values())
            del dataset.features[:]
            dataset.features.extend(kept)


def add_reading(
    feature: statistics_pb2.FeatureNameStatistics,
    description: str,
    quantity: str,
    values: statistics_pb2.FeatureNameStatistics,
) -> None:
    """Adds the statistics of a column's parsed values to those of the column."""
    values.path.step[:] = [quantity]
    feature.custom_stats.add(name=description).any.Pack(values)


def readings(
    feature: statistics_pb2.FeatureNameStatistics,
) -> dict[str, dict[str, statistics_pb2.FeatureNameStatistics]]:
    """Returns the statistics of a column's parsed values by format and quantity; empty for others."""
    parsed: dict[str, dict[str, statistics_pb2.FeatureNameStatistics]] = {}
    for custom in feature.custom_stats:
        values = statistics_pb2.FeatureNameStatistics()
        if custom.any.Unpack(values):
            parsed.setdefault(custom.name, {})[values.path.step[0]] = values
    return parsed
