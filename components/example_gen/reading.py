"""Reads CSV files into tf.Examples, with one type for each column in all splits."""

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import tensorflow as tf
from apache_beam.io.filesystems import FileSystems
from tfx.utils import io_utils
from tfx_bsl.coders import csv_decoder

from components.beam.spread import Spread
from components.errors import SettingError
from components.example_gen.files import PlannedFiles, describe_change, find_files
from components.hashed_reader import HashedReader

Row = list[bytes]
ColumnInfos = list[csv_decoder.ColumnInfo]


def num_bytes(files: Sequence[str]) -> int:
    """Returns the number of bytes of all files."""
    matches = FileSystems.match(list(files))
    return sum(file.size_in_bytes for match in matches for file in match.metadata_list)


def read_examples(
    pipeline: beam.Pipeline,
    folder: str,
    patterns: Mapping[str, str],
    text_columns: Sequence[str] = (),
    float_columns: Sequence[str] = (),
    planned: PlannedFiles | None = None,
) -> dict[str, beam.PCollection]:
    """Returns the tf.Examples of each input split.

    Source: TFX's CsvExampleGen, with the same tf.Examples. In TFX each split has its own types, so a column
    can be int64 in one split and float32 in another, which nothing can read.

    Args:
      pipeline: The Beam pipeline.
      folder: Folder of the files.
      patterns: Patterns of the files in the folder, by split.
      text_columns: Columns that are text.
      float_columns: Columns that are float32 even if all their cells are integers.
      planned: Files with their planned content; None for the files as they are now.

    Raises:
      RuntimeError: A pattern matches no file, or two files have different headers.
      SettingError: A file differs from its planned content; a worker raises it after reading the file.
    """
    planned = planned or PlannedFiles(folder, patterns.values())
    names: list[str] | None = None
    rows = {}
    for split, pattern in patterns.items():
        paths = find_files(folder, pattern)
        if not paths:
            raise RuntimeError(f"No file in {folder} matches {pattern!r} of the split {split!r}.")
        for path in paths:
            found = io_utils.load_csv_column_names(path)
            if names not in (None, found):
                raise RuntimeError(f"{path} has another header than {paths[0]}: {found}.")
            names = found
        rows[split] = (
            pipeline
            | f"Files[{split}]" >> Spread([(path, planned.digest(path)) for path in paths])
            | f"Read[{split}]" >> beam.FlatMap(_read_rows, names)
        )
    types = beam.pvalue.AsSingleton(
        tuple(rows.values())
        | "AllRows" >> beam.Flatten()
        | "InferTypes"
        >> beam.CombineGlobally(csv_decoder.ColumnTypeInferrer(names, skip_blank_lines=True))
    )
    return {
        split: part
        | f"Encode[{split}]"
        >> beam.Map(
            _to_example, types, frozenset(text_columns), frozenset(float_columns)
        ).with_output_types(tf.train.Example)
        for split, part in rows.items()
    }


def _read_rows(file: tuple[str, str], names: list[str]) -> Iterator[Row]:
    """Yields the rows of a file; raises at its end if its SHA-256 is not the planned one."""
    path, sha256 = file
    with FileSystems.open(path) as stream:
        content = HashedReader(stream)
        text = io.TextIOWrapper(io.BufferedReader(content), encoding="utf-8", newline="")
        first = text.readline()
        reader = csv.reader(itertools.chain([first], text))
        next(reader)
        for row in reader:
            if row:
                yield [cell.encode() for cell in row]
        if content.sha256 != sha256 or first.strip().split(",") != names:
            raise SettingError(describe_change(path))


def _to_example(
    row: Row, types: ColumnInfos, text_columns: frozenset[str], float_columns: frozenset[str]
) -> tf.train.Example:
    features = {
        info.name: _feature(cell, _type(info, text_columns, float_columns))
        for cell, info in zip(row, types, strict=True)
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def _type(
    info: csv_decoder.ColumnInfo, text_columns: frozenset[str], float_columns: frozenset[str]
) -> Any:
    if info.name in text_columns:
        return csv_decoder.ColumnType.STRING
    if info.name in float_columns and info.type == csv_decoder.ColumnType.INT:
        return csv_decoder.ColumnType.FLOAT
    return info.type


def _feature(cell: bytes, column_type: Any) -> tf.train.Feature:
    """Returns the feature of a cell; an empty cell is a list without a value."""
    if column_type == csv_decoder.ColumnType.INT:
        integers = tf.train.Int64List(value=[int(cell)] if cell else [])
        return tf.train.Feature(int64_list=integers)
    if column_type == csv_decoder.ColumnType.FLOAT:
        floats = tf.train.FloatList(value=[float(cell)] if cell else [])
        return tf.train.Feature(float_list=floats)
    if column_type == csv_decoder.ColumnType.STRING:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[cell] if cell else []))
    return tf.train.Feature()  # a column without a value in any row
