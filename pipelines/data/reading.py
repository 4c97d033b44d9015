"""Reads CSV files as record batches of strings."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from components.example_gen.block_size import block_bytes
from components.example_gen.line_ends import WholeLineEnds
from pipelines.data import faults
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.opening import open_bytes
from pipelines.errors import BadInputError

BLOCK_BYTES = 8 << 20
"""Size of the text of a batch; a wide table has larger ones, see `block_bytes`."""


def read_batches(
    file: Path, header: list[str], dialect: Dialect = COMMAS, positions: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yields pyarrow record batches of the rows below the header, with string columns."""
    try:
        with open_bytes(file) as stream:
            yield from parse(stream, len(header), dialect, positions)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise BadInputError(faults.describe_fault(file, header, str(error), dialect)) from error


def parse(
    stream: Any, num_columns: int, dialect: Dialect = COMMAS, positions: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yields pyarrow record batches of the rows below the header of a text, with string columns.

    `stream`: UTF-8 text; only its method `read` is called.
    """
    from pyarrow import csv

    names = [str(index) for index in range(num_columns)]
    reader = csv.open_csv(
        WholeLineEnds(stream, num_columns, dialect.delimiter),
        read_options=csv.ReadOptions(
            block_size=block_bytes(BLOCK_BYTES, num_columns),
            column_names=names,
            skip_rows=0,
            use_threads=False,
        ),
        parse_options=csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True
        ),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
            include_columns=None if positions is None else [names[item] for item in positions],
        ),
    )
    is_header = True
    for batch in reader:
        yield batch.slice(1) if is_header else batch
        is_header = False
