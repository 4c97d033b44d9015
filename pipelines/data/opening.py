"""Opens the user's files: a compressed CSV is unpacked, and a Parquet file is read as its CSV."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from components.errors import SettingError
from components.example_gen.file_names import is_parquet
from pipelines.errors import BadInputError


@contextmanager
def open_bytes(file: Path) -> Iterator[io.BufferedReader]:
    """Opens a file to read its CSV."""
    from components.example_gen.csv_text import as_csv

    with file.open("rb") as stream:
        try:
            yield as_csv(str(file), stream)
        except SettingError as error:
            raise BadInputError(str(error)) from error


def known_types(file: Path) -> dict[str, str]:
    """Returns the types that a Parquet file gives to its columns, those that the cells may not show.

    They are `string` or `float`. A CSV has none.
    """
    if not is_parquet(file):
        return {}
    from components.example_gen.cells import ColumnType
    from components.example_gen.csv_text import known_types

    names = {ColumnType.TEXT: "string", ColumnType.FLOAT: "float"}
    with file.open("rb") as stream:
        try:
            types = known_types(str(file), stream)
        except SettingError as error:
            raise BadInputError(str(error)) from error
    return {name: names[kind] for name, kind in types.items() if kind in names}


@contextmanager
def open_text(file: Path, errors: str = "strict", encoding: str = "utf-8-sig") -> Iterator[TextIO]:
    """Opens a file to read its CSV as text."""
    with open_bytes(file) as stream:
        text = io.TextIOWrapper(stream, encoding, errors, newline="")
        yield text
        text.detach()  # a Parquet file and a compressed one have nothing to close
