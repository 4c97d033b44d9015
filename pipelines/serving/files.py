"""Predicts the rows of CSV files, block by block."""

import contextlib
import csv
import functools
import io
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from components.beam.ahead import map_ahead
from pipelines.data import faults
from pipelines.data.byte_checks import readable
from pipelines.data.cells import list_rows
from pipelines.data.dialect import Dialect, detect_dialect
from pipelines.data.encoding import as_utf8
from pipelines.data.files import find_csv_files
from pipelines.data.profile import UNNAMED
from pipelines.data.reading import read_batches
from pipelines.errors import BadInputError
from pipelines.serving.cells import CellError, check_names
from pipelines.serving.csv_columns import inputs_of_columns, typed_columns
from pipelines.serving.model import Model
from pipelines.serving.saved_model import SERVING_ROWS, Signature

_PREFIX = "predicted_"


@dataclass(frozen=True)
class Reading:
    """Settings of how CSV files are read: those of `[data]`; None is detected.

    Attributes:
      delimiter: Character between the fields of a row.
      quote: Character around a field that contains a delimiter.
      encoding: Encoding of the files.
    """

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None


def predict_files(
    model: Model,
    data: str,
    output: Path | None,
    reading: Reading,
    say: Callable[[str], None],
    may_be_empty: bool = False,
) -> int:
    """Writes the rows of CSV files with their predictions, and returns the number of rows.

    The memory in use does not depend on the number of rows. The columns of the input come first, as they are.

    Args:
      model: Model that predicts.
      data: CSV, folder of CSVs, or pattern.
      output: File to write: Parquet if it ends so, otherwise CSV. None writes CSV to standard output.
      reading: Settings of how the files are read.
      say: Function that shows a line to the user.
      may_be_empty: True allows files without rows; the output is then empty, too.

    Raises:
      BadInputError: The files cannot be used; the message names file, line and column. No file is written.
    """
    with readable(data, "--data"):
        found = find_csv_files(data)
        utf8 = as_utf8(found, reading.encoding)
    try:
        with readable(data, "--data"):
            dialect = detect_dialect(utf8.files, reading.delimiter, reading.quote)
            header = _header(utf8.files, dialect)
        check_names(header, model.columns, where=f"{found[0]} has")
        for name in model.columns:
            if name not in header:
                say(f"! {found[0]} has no column {name!r}: it counts as missing in every row")
        with _writer(output) as writer:
            num_rows = _predict(model, utf8.files, header, dialect, writer, say)
            if not num_rows and not may_be_empty:
                raise BadInputError(
                    f"{utf8.files[0]}: there is a header (line 1) but no row below it."
                )
            return num_rows
    except BadInputError as error:
        raise BadInputError(utf8.in_words_of_user(str(error))) from error


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
) -> int:
    signature = _fast_signature(model)
    num_rows = 0
    names: dict[str, str] = {}
    blocks = map_ahead(
        functools.partial(_typed, signature, dialect), _blocks(files, header, dialect)
    )
    with contextlib.closing(blocks):
        for texts, columns, inputs, size in blocks:
            num_rows += size
            if not size:
                continue
            predictions = model.predict_inputs(inputs, size, signature)
            if not names:
                names = {name: _free_name(name, header) for name in predictions}
                for name, free in names.items():
                    if name != free:
                        say(f"! the input has a column {name!r}: the prediction is {free!r}")
            writer.write(texts, columns, {names[name]: rows for name, rows in predictions.items()})
    return num_rows


def _blocks(
    files: Sequence[Path], header: list[str], dialect: Dialect
) -> Iterator[tuple[Path, int, dict[str, Any], int]]:
    """Yields blocks of rows: their file, the rows before them in it, their columns, and how many they are."""
    for file in files:
        rows_before = 0
        for batch in read_batches(file, header, dialect):
            yield file, rows_before, dict(zip(header, batch.columns, strict=True)), len(batch)
            rows_before += len(batch)


def _typed(
    signature: Signature, dialect: Dialect, block: tuple[Path, int, dict[str, Any], int]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], int]:
    """Returns a block's columns as texts, those of the model as typed arrays, its inputs, and its rows."""
    file, rows_before, texts, num_rows = block
    try:
        columns = typed_columns(texts, signature.columns, num_rows)
    except CellError as error:
        raise _located(error, file, rows_before, dialect) from error
    return texts, columns, inputs_of_columns(columns, signature, num_rows), num_rows


def _fast_signature(model: Model) -> Signature:
    """Returns the signature of rows, if its predictions are those of the one for tf.Examples.

    Tensors by column are made several times faster than tf.Examples. Canned models have the same predictions.
    """
    usual, fast = model.signature_for_rows(), model.signatures.get(SERVING_ROWS)
    if fast is not None and usual.columns == fast.columns:
        if usual.method == "classify" and {"probabilities", "all_classes"} <= fast.outputs.keys():
            return fast
        if usual.method == "regress" and list(fast.outputs) == ["predictions"]:
            return fast
    return usual


def _free_name(name: str, header: Sequence[str]) -> str:
    while name in header:
        name = f"{_PREFIX}{name}"
    return name


def _located(error: CellError, file: Path, rows_before: int, dialect: Dialect) -> BadInputError:
    position = rows_before + error.row
    line, _ = next(itertools.islice(list_rows(file, dialect), position, None))
    return BadInputError(f"{file}, line {line}, column {error.column!r}: {error.reason}")


class _Writer(Protocol):
    """Writes blocks of rows with their predictions."""

    def write(
        self, texts: dict[str, Any], columns: dict[str, Any], predictions: dict[str, Any]
    ) -> None:
        """Writes a block.

        Args:
          texts: Columns of the input, as pyarrow string arrays.
          columns: Columns of the model, as typed arrays.
          predictions: Predictions by column.
        """


@contextlib.contextmanager
def _writer(output: Path | None) -> Iterator[_Writer]:
    """Yields the writer of a file, which appears when it is complete."""
    if output is None:
        sys.stdout.flush()
        with open(os.dup(1), "wb") as stdout:
            yield _CsvWriter(stdout)
        return
    if not output.parent.is_dir():
        raise BadInputError(f"There is no folder {output.parent} for {output.name}. Make it first.")
    if output.is_dir():
        raise BadInputError(f"{output} is a folder. Give a file, such as predictions.csv.")
    if output.exists() and not output.is_file():  # a device or a pipe
        with output.open("wb") as stream:
            yield _CsvWriter(stream)
        return
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
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

    def write(
        self, texts: dict[str, Any], columns: dict[str, Any], predictions: dict[str, Any]
    ) -> None:
        import pyarrow
        import pyarrow.compute as pc

        columns_out = {**texts, **_arrays(predictions)}
        if not self._has_header:
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(columns_out)
            self._stream.write(line.getvalue().encode())
            self._has_header = True
        fields = [_quoted(cells.cast(pyarrow.string())) for cells in columns_out.values()]
        lines = pc.binary_join_element_wise(*fields, ",").to_pylist()
        self._stream.write("\n".join([*lines, ""]).encode())


class _ParquetWriter:
    """Writes Parquet: the model's columns of numbers as numbers, others as text."""

    def __init__(self, file: Path):
        self._file = file
        self._writer: Any = None

    def write(
        self, texts: dict[str, Any], columns: dict[str, Any], predictions: dict[str, Any]
    ) -> None:
        import pyarrow
        from pyarrow import parquet

        numbers = {
            name: array
            for name, array in columns.items()
            if not pyarrow.types.is_binary(array.type)
        }
        table = pyarrow.table({**texts, **numbers, **_arrays(predictions)})
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Completes the file."""
        if self._writer is not None:
            self._writer.close()


def _quoted(cells: Any) -> Any:
    """Returns cells as fields of CSV: in quotes where they need them, which pyarrow's own writer ignores."""
    import pyarrow.compute as pc

    needs_quotes = pc.match_substring_regex(cells, '[",\r\n]')
    if not pc.any(needs_quotes).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs_quotes, pc.binary_join_element_wise('"', doubled, '"', ""), cells)


def _arrays(predictions: dict[str, Any]) -> dict[str, Any]:
    import pyarrow

    return {
        name: pyarrow.array(values, pyarrow.string() if values.dtype == object else None)
        for name, values in predictions.items()
    }
