"""Raw rows of a split, with the label and without it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils

from components.errors import SettingError

_MAX_READ = 20_000  # records, of which the rows are chosen
_BATCH_SIZE = 1024


@dataclass(frozen=True)
class Rows:
    examples: list[bytes]  # Serialized tf.Examples without the label
    with_label: list[bytes]
    columns: dict[str, list[list[Any]]]  # The list of each row's values, by column; without the label

    def describe(self, row: int) -> str:
        shown = [f"{name}={_text(values[row][0])}" for name, values in self.columns.items() if values[row]]
        return ", ".join(shown[:4]) + (", ..." if len(shown) > 4 else "")


def read_rows(artifacts: Sequence[Artifact], splits: Sequence[str], number: int, label: str | None) -> Rows:
    """Returns rows from all over the first files of the splits."""
    files = [
        path
        for split in splits
        for uri in artifact_utils.get_split_uris(list(artifacts), split)
        for path in sorted(fileio.glob(io_utils.all_files_pattern(uri)))
    ]
    records: list[bytes] = []
    for record in _records(files):
        records.append(record)
        if len(records) == max(_MAX_READ, number):
            break
    if not records:
        raise SettingError(f"The splits {', '.join(splits)} have no example to test the model with.")
    chosen = np.unique(np.linspace(0, len(records) - 1, min(number, len(records))).astype(int))
    with_label = [records[i] for i in chosen]
    features = [tf.train.Example.FromString(example).features.feature for example in with_label]
    names = sorted({name for example in features for name in example} - {label})
    columns = {
        name: [_values(example[name]) if name in example else [] for example in features] for name in names
    }
    return Rows([_without(example, label) for example in with_label], with_label, columns)


def _records(files: Sequence[str]) -> Iterator[bytes]:
    for path in files:
        dataset = tf.data.TFRecordDataset(path, "GZIP" if path.endswith(".gz") else "")
        for batch in dataset.batch(_BATCH_SIZE).as_numpy_iterator():
            yield from batch.tolist()


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


def _without(serialized: bytes, label: str | None) -> bytes:
    example = tf.train.Example.FromString(serialized)
    example.features.feature.pop(label or "", None)
    remaining: bytes = example.SerializeToString(deterministic=True)
    return remaining


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "replace")[:30])
    return f"{value:.6g}" if isinstance(value, float) else str(value)
