"""Predicts the rows of CSV files, block by block."""

import contextlib
import csv
import functools
import io
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.beam.ahead import map_ahead
from pipelines import atomic_files
from pipelines.data import faults
from pipelines.data.byte_checks import check_bytes, readable
from pipelines.data.cells import list_rows
from pipelines.data.dialect import DELIMITERS, Dialect, detect_dialect
from pipelines.data.encoding import as_utf8
from pipelines.data.files import find_csv_files
from pipelines.data.profile import UNNAMED
from pipelines.data.quotes import check_quotes
from pipelines.data.reading import read_batches
from pipelines.errors import BadInputError, counted
from pipelines.serving.cells import CellError, Cells, check_names, listed, to_cells
from pipelines.serving.csv_columns import UnreadCells, inputs_of_columns, typed_columns
from pipelines.serving.explanations import NUM_BACKGROUND, background_rows, explain
from pipelines.serving.model import Model
from pipelines.serving.saved_model import Column, Signature

_PREFIX = "predicted_"
_MAX_NOTES = 3
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")


@dataclass(frozen=True)
class Reading:
    """Settings of how CSV files are read: those of `[data]`; None is detected."""

    delimiter: str | None = None  # Character between the fields of a row
    quote: str | None = None  # Character around a field that contains a delimiter
    encoding: str | None = None


def predict_files(
    model: Model,
    data: str,
    output: Path | None,
    reading: Reading,
    say: Callable[[str], None],
    num_explained: int = 0,
) -> int:
    """Writes the rows of CSV files with their predictions, and returns the number of rows.

    The memory in use does not depend on the number of rows. The columns of the input come first, as they are.

    `output`: file to write: Parquet if it ends so, otherwise CSV. None writes CSV to standard output.
    `num_explained`: number of the strongest contributions of columns to write for each row.
    """
    with readable(data, "--data"):
        files = find_csv_files(data)
        _check_output(output, files)
        utf8 = as_utf8(files, reading.encoding)

    def say_with_original_names(line: str) -> None:
        say(utf8.with_original_paths(line))

    try:
        with readable(data, "--data"):
            dialect = _dialect(utf8.files, reading, model.columns)
            header = _header(utf8.files, dialect)
        with readable(data, "--data"):
            _check_text(utf8.files, header, dialect, reading, say_with_original_names)
        _check_names(header, model.columns, files[0])
        if absent := [name for name in model.columns if name not in header]:
            singular = f"column {absent[0]!r}: it counts"
            names = singular if len(absent) == 1 else f"columns {listed(absent)}: they count"
            say(f"! {files[0]} has no {names} as missing in every row")
        with _writer(output) as writer:
            num_rows = _predict(
                model, utf8.files, header, dialect, writer, say_with_original_names, num_explained
            )
            if not num_rows:
                raise BadInputError(f"{utf8.files[0]}: there is a header (line 1) but no row below it.")
            return num_rows
    except BadInputError as error:  # names the user's files, not their copies in UTF-8
        raise BadInputError(utf8.with_original_paths(str(error))) from error


def _check_output(output: Path | None, files: Sequence[Path]) -> None:
    if output is None:
        return
    if output.resolve() in files:
        raise BadInputError(f"-o {output} is a file of --data, which it would overwrite. Give another name.")
    if output.suffix.lower() in _COMPRESSED:
        raise BadInputError(f"-o {output}: predictions are written as .csv or .parquet, not compressed.")


def _dialect(files: Sequence[Path], reading: Reading, columns: Mapping[str, Column]) -> Dialect:
    """Returns the dialect of the files, with a delimiter that finds columns of the model if there is one.

    Detection is not enough: a row that is too short makes its delimiter less likely.
    """
    dialect = detect_dialect(files, reading.delimiter, reading.quote)
    if reading.delimiter is None and not columns.keys() & _header(files, dialect):
        for delimiter in DELIMITERS:
            other = replace(dialect, delimiter=delimiter)
            with contextlib.suppress(BadInputError):  # its header may not be one
                if columns.keys() & faults.read_header(files[0], other):
                    return other
    return dialect


def _check_text(
    files: Sequence[Path], header: list[str], dialect: Dialect, reading: Reading, say: Callable[[str], None]
) -> None:
    """Refuses files that a training refuses, before anything is written: open or stray quotes, NULs."""
    for file in files:
        check_bytes(file, dialect)
        for doubt in check_quotes(file, header, dialect, reading.quote is not None).doubts[:_MAX_NOTES]:
            say(f"! {doubt}")


def _check_names(header: list[str], columns: Mapping[str, Column], file: Path) -> None:
    try:
        check_names(header, columns, where=f"{file} has")
    except BadInputError as error:
        if advice := faults.describe_missing_header(header):
            raise BadInputError(f"{error} {advice}") from error
        raise


def _header(files: Sequence[Path], dialect: Dialect) -> list[str]:
    first = faults.read_header(files[0], dialect)
    for file in files[1:]:
        header = faults.read_header(file, dialect)
        if header != first:
            raise BadInputError(faults.describe_header_difference(files[0], first, file, header))
    return [name or UNNAMED for name in first]


def _predict(
    model: Model,
    files: Sequence[Path],
    header: list[str],
    dialect: Dialect,
    writer: "_Writer",
    say: Callable[[str], None],
    num_explained: int,
) -> int:
    background = to_cells(background_rows(model) if num_explained else [], model.columns)
    signature = model.fast_signature()
    num_rows = 0
    names: dict[str, str] = {}
    unread: dict[str, tuple[int, str]] = {}
    num_unanswered = 0
    blocks = map_ahead(functools.partial(_typed, signature, dialect), _blocks(files, header, dialect))
    with contextlib.closing(blocks):
        for block, typed in blocks:
            num_rows += block.size
            if not block.size:
                continue
            for cells in typed.unread:
                if cells.column not in unread:
                    line = _source_line(block, cells.row, dialect)
                    unread[cells.column] = (0, f"{cells.cell!r} ({line})")
                count, first = unread[cells.column]
                unread[cells.column] = (count + cells.count, first)
            predictions = model.predict_inputs(typed.inputs, block.size, signature)
            without = np.any([_is_nan(rows) for rows in predictions.values()], axis=0)
            if without.any() and not num_unanswered:
                line = _source_line(block, int(without.argmax()), dialect)
                say(f"! the model answers with NaN, which is not a prediction; the first time: {line}")
            num_unanswered += int(without.sum())
            if num_explained:
                values = {name: array.to_pylist() for name, array in typed.columns.items()}
                if not names:
                    source = "the evaluation split" if background[1] else str(block.file)
                    background = background if background[1] else _sample(values, block.size)
                    say(f"contributions: compared with {counted(background[1], 'row')} of {source}")
                explanation = explain(model, values, block.size, *background)
                predictions.update(explanation.strongest(num_explained))
            if not names:  # the first block: a prediction must not replace a column of the input
                for name in predictions:
                    names[name] = name
                    while names[name] in header:
                        names[name] = f"{_PREFIX}{names[name]}"
                    if names[name] != name:
                        say(f"i the input has a column {name!r}: the prediction is in {names[name]!r}")
            named = {names[name]: rows for name, rows in predictions.items()}
            writer.write(block.texts, typed.columns, named)
    if num_unanswered:
        have = "has" if num_unanswered == 1 else "have"
        say(f"! {num_unanswered} of {counted(num_rows, 'row')} {have} no prediction")
    for column, (count, first) in unread.items():
        say(
            f"! column {column!r}: {count} of {counted(num_rows, 'cell')} cannot be read and "
            f"{'counts' if count == 1 else 'count'} as missing, as "
            f"others did in training; the first: {first}"
        )
    return num_rows


@dataclass(frozen=True)
class _Block:
    file: Path
    rows_before: int  # Number of rows before them in the file
    texts: dict[str, Any]  # Columns, as pyarrow string arrays
    size: int


@dataclass(frozen=True)
class _Typed:
    """Rows of a file, as a model takes them."""

    columns: dict[str, Any]  # Columns of the model, as typed arrays
    inputs: dict[str, Any]  # Inputs of a signature, as NumPy arrays
    unread: list[UnreadCells]  # Cells that could not be read


def _blocks(files: Sequence[Path], header: list[str], dialect: Dialect) -> Iterator[_Block]:
    for file in files:
        rows_before = 0
        for batch in read_batches(file, header, dialect):
            texts = dict(zip(header, batch.columns, strict=True))
            yield _Block(file, rows_before, texts, len(batch))
            rows_before += len(batch)


def _typed(signature: Signature, dialect: Dialect, block: _Block) -> tuple[_Block, _Typed]:
    try:
        columns, unread = typed_columns(block.texts, signature.columns, block.size)
        inputs = inputs_of_columns(columns, signature, block.size)
    except CellError as error:
        line = _source_line(block, error.row, dialect)
        raise BadInputError(f"{line}, column {error.column!r}: {error.reason}") from error
    return block, _Typed(columns, inputs, unread)


def _sample(cells: Cells, num_rows: int) -> tuple[Cells, int]:
    """Returns rows from all over a block, and their number."""
    chosen = range(0, num_rows, max(1, num_rows // NUM_BACKGROUND))[:NUM_BACKGROUND]
    return {name: [values[row] for row in chosen] for name, values in cells.items()}, len(chosen)


def _is_nan(values: Any) -> Any:
    """Returns a mask of the predictions that are NaN."""
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)


def _source_line(block: _Block, row: int, dialect: Dialect) -> str:
    rows = list_rows(block.file, dialect)
    line, _ = next(itertools.islice(rows, block.rows_before + row, None))
    return f"{block.file}, line {line}"


class _Writer(Protocol):
    def write(self, texts: dict[str, Any], columns: dict[str, Any], predictions: dict[str, Any]) -> None:
        """Writes a block."""


@contextlib.contextmanager
def _writer(output: Path | None) -> Iterator[_Writer]:
    """Yields the writer of a file, which appears when it is complete."""
    if output is None:
        sys.stdout.flush()
        with open(os.dup(1), "wb") as stdout:
            yield _CsvWriter(stdout)
        return
    if not output.parent.is_dir():
        raise BadInputError(f"There is no folder {output.parent} for {output.name}. Create it first.")
    if output.is_dir():
        raise BadInputError(f"{output} is a folder. Give a file, such as predictions.csv.")
    if output.exists() and not output.is_file():  # a device or a pipe
        with output.open("wb") as stream:
            yield _CsvWriter(stream)
        return
    partial = atomic_files.partial_path(output)
    try:
        if output.suffix == ".parquet":
            parquet = _ParquetWriter(partial)
            try:
                yield parquet
            finally:
                parquet.close()
        else:
            with partial.open("wb") as stream:
                yield _CsvWriter(stream)
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)


class _CsvWriter:
    """Writes CSV, with the cells of the input as they are."""

    def __init__(self, stream: Any):
        self._stream = stream
        self._has_header = False

    def write(self, texts: dict[str, Any], columns: dict[str, Any], predictions: dict[str, Any]) -> None:
        columns_out = {**texts, **_arrays(predictions)}
        if not self._has_header:
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(columns_out)
            self._stream.write(line.getvalue().encode())
            self._has_header = True
        fields = [_quoted(cells.cast(pa.string()).fill_null("")) for cells in columns_out.values()]
        lines = pc.binary_join_element_wise(*fields, ",").to_pylist()
        self._stream.write("\n".join([*lines, ""]).encode())


class _ParquetWriter:
    """Writes Parquet: the model's columns of numbers as numbers, others as text."""

    def __init__(self, file: Path):
        self._file = file
        self._writer: Any = None

    def write(self, texts: dict[str, Any], columns: dict[str, Any], predictions: dict[str, Any]) -> None:
        from pyarrow import parquet

        numbers = {name: array for name, array in columns.items() if not pa.types.is_binary(array.type)}
        table = pa.table({**texts, **numbers, **_arrays(predictions)})
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _quoted(cells: Any) -> Any:
    """Returns cells as fields of CSV: in quotes where they need them, which pyarrow's own writer ignores."""
    needs_quotes = pc.match_substring_regex(cells, '[",\r\n]')
    if not pc.any(needs_quotes).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs_quotes, pc.binary_join_element_wise('"', doubled, '"', ""), cells)


def _arrays(predictions: dict[str, Any]) -> dict[str, Any]:
    return {
        name: pa.array(values, pa.string() if values.dtype == object else None)
        for name, values in predictions.items()
    }
