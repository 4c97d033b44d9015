"""Rows that hold no data, as joined files have them: the header once more, or a byte order mark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.data.cells import list_rows
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.errors import BadInputError, shown

_MARK = "\ufeff"


def why_odd(row: Sequence[str], header: Sequence[str]) -> tuple[str, str] | None:
    """Returns the kind and the description of what is odd about a row; None for a row of data."""
    if row and row[0].startswith(_MARK):
        cell = shown(row[0])
        return (
            "a byte order mark",
            f"{cell!r} in column {header[0]!r} starts with a byte order mark",
        )
    if len(header) > 1 and [cell.strip() for cell in row] == list(header):
        return "the header once more", f"the row is the header once more ({shown(','.join(row))})"
    return None


def has_odd_row(batch: Any, header: Sequence[str]) -> bool:
    """Returns whether a record batch of strings has a row that is not data."""
    import pyarrow.compute as pc

    if pc.any(pc.starts_with(batch.column(0), _MARK)).as_py():
        return True
    is_header = None
    for cells, name in zip(batch.columns, header, strict=True):
        is_name = pc.equal(pc.utf8_trim_whitespace(cells), name)
        is_header = is_name if is_header is None else pc.and_(is_header, is_name)
        if len(header) == 1 or not pc.any(is_header).as_py():
            return False
    return True


def refuse_odd_row(file: Path, header: Sequence[str], dialect: Dialect = COMMAS) -> None:
    """Refuses the first row of a file that is not data."""
    for line, row in list_rows(file, dialect):
        odd = why_odd(row, header)
        if odd is not None:
            raise BadInputError(
                f"{file}, line {line}: {odd[1]}, as where files were joined. Remove it, or set "
                'data.on_bad_row = "quarantine" to leave the row out.'
            )
