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
    """Some rows of the data."""

    examples: list[bytes]  # Serialized tf.Examples without the label
    with_label: list[bytes]
    # The list of each row's values, by column; without the label.
    columns: dict[str, list[list[Any]]]

    def describe(self, row: int) -> str:
        """Returns some values of a row, for a message."""
        shown = [
            f"{name}={_text(values[row][0])}"
            for name, values in self.columns.items()
            if values[row]
        ]
        return ", ".join(shown[:4]) + (", ..." if len(shown) > 4 else "")


def read_rows(
    artifacts: Sequence[Artifact], splits: Sequence[str], number: int, label: str | None
) -> Rows:
    """Returns rows from all over the first files of the splits."""
    files = [
        path
        for split in splits
        for uri in artifact_utils.get_split_uris(list(artifacts), split)
        for path in sorted(fileio.glob(io_utils.all_files_pattern(uri)))
    ]
    found: list[bytes] = []
    for record in _records(files):
        found.append(record)
        if len(found) == max(_MAX_READ, number):
            break
    if not found:
        raise SettingError(f"The splits {', '.join(splits)} have no example to ask the model with.")
    chosen = np.unique(np.linspace(0, len(found) - 1, min(number, len(found))).astype(int))
    with_label = [found[i] for i in chosen]
    features = [tf.train.Example.FromString(one).features.feature for one in with_label]
    names = sorted({name for one in features for name in one} - {label})
    columns = {
        name: [_values(one[name]) if name in one else [] for one in features] for name in names
    }
    return Rows([_without(one, label) for one in with_label], with_label, columns)


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
