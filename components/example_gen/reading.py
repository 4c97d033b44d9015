"""Reads CSV and Parquet files into record batches, with one type for each column in all splits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from components.beam.ahead import ahead
from components.beam.spread import Spread
from components.errors import SettingError
from components.example_gen.cells import ColumnType, convert, infer_type
from components.example_gen.csv_file import CsvFile, csv_bytes, read_names
from components.example_gen.files import PlannedFiles, find_files

Types = dict[str, ColumnType]


def num_bytes(files: Sequence[str]) -> int:
    """Returns the total number of bytes of CSV, which is an estimate for compressed files."""
    matches = FileSystems.match(list(files))
    matching = [file for match in matches for file in match.metadata_list]
    return sum(csv_bytes(file.path, file.size_in_bytes) for file in matching)


def read_batches(
    pipeline: beam.Pipeline,
    folder: str,
    patterns: Mapping[str, str],
    text_columns: Sequence[str] = (),
    float_columns: Sequence[str] = (),
    planned: PlannedFiles | None = None,
    column_types: Mapping[str, str] | None = None,
) -> dict[str, beam.PCollection]:
    """Returns the rows of each input split, as record batches of int64, float32, binary and null columns.

    Unless the types are given (`empty`, `integer`, `float` or `text` by column), the files are read
    twice: for the types and for the values. An empty cell is a null.

    Source: TFX's CsvExampleGen, with the same values. In TFX each split has its own types, so a column
    can be int64 in one split and float32 in another, which nothing can read.
    """
    planned = planned or PlannedFiles(folder, patterns.values())
    names: tuple[str, ...] | None = None
    files = {}
    for split, pattern in patterns.items():
        paths = find_files(folder, pattern)
        if not paths:
            raise RuntimeError(f"No file in {folder} matches {pattern!r} of the split {split!r}.")
        for path in paths:
            header = read_names(path)
            if names not in (None, header):
                raise RuntimeError(f"{path} has another header than {paths[0]}: {[*header]}.")
            names = header
        csv_files = [CsvFile(path, planned.digest(path), header) for path in paths]
        files[split] = pipeline | f"Files[{split}]" >> Spread(csv_files)
    configured = frozenset(text_columns), frozenset(float_columns)
    types: Any
    if column_types:
        types = _adjusted({name: _parse_type(column_types, name) for name in names or ()}, *configured)
    else:
        types = beam.pvalue.AsSingleton(
            tuple(files.values())
            | "AllFiles" >> beam.Flatten()
            | "InferTypes" >> beam.Map(_infer_types, *configured)
            | "AllTypes" >> beam.CombineGlobally(_widest)
        )
    return {split: part | f"Read[{split}]" >> beam.FlatMap(_read, types) for split, part in files.items()}


def _infer_types(file: CsvFile, text_columns: frozenset[str], float_columns: frozenset[str]) -> Types:
    declared = file.known_types()
    types = {name: declared.get(name, ColumnType.EMPTY) for name in file.names}
    columns = [
        position
        for position, name in enumerate(file.names)
        if name not in declared and name not in text_columns
    ]
    if columns:
        for block in ahead(file.blocks(columns)):
            for position, cells in zip(columns, block.columns, strict=True):
                name = file.names[position]
                types[name] = infer_type(cells, types[name])
    return _adjusted(types, text_columns, float_columns)


def _adjusted(types: Types, text_columns: frozenset[str], float_columns: frozenset[str]) -> Types:
    """Returns types, with the columns that are configured to be text or float."""
    adjusted = types | dict.fromkeys(text_columns & types.keys(), ColumnType.TEXT)
    floats = (name for name in float_columns if adjusted.get(name) is ColumnType.INTEGER)
    return adjusted | dict.fromkeys(floats, ColumnType.FLOAT)


def _widest(all_types: Iterable[Types]) -> Types:
    """Returns the type of each column that holds the cells of all files."""
    widest: Types = {}
    for types in all_types:
        for name, column_type in types.items():
            widest[name] = max(widest.get(name, column_type), column_type)
    return widest


def _read(file: CsvFile, types: Types) -> Iterator[Any]:
    return ahead(_typed(file, types))


def _typed(file: CsvFile, types: Types) -> Iterator[Any]:
    for block in file.blocks():
        columns = zip(file.names, block.columns, strict=True)
        arrays = [_converted(file, name, cells, types[name]) for name, cells in columns]
        yield pa.RecordBatch.from_arrays(arrays, list(file.names))


def _parse_type(column_types: Mapping[str, str], name: str) -> ColumnType:
    try:
        return ColumnType[column_types[name].upper()]
    except KeyError as error:
        raise SettingError(
            f"column_types gives each column one of {', '.join(kind.name.lower() for kind in ColumnType)}. "
            f"Received for {name!r}: {column_types.get(name)!r}"
        ) from error


def _converted(file: CsvFile, name: str, cells: Any, column_type: ColumnType) -> Any:
    try:
        return convert(cells, column_type)
    except (ValueError, OverflowError) as error:
        raise SettingError(
            f"{file.path}: column {name!r} is given as {column_type.name.lower()}, which does not hold all "
            f"of its cells: {error}. Give another type in column_types, or none."
        ) from error
