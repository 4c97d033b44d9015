"""Finds the CSV files of a `data.path`."""

import glob
from collections.abc import Sequence
from pathlib import Path

from components.example_gen.file_names import is_parquet, split_name
from pipelines.data.byte_checks import readable
from pipelines.errors import BadInputError

_UNREADABLE = (".csv.xz", ".csv.zip")
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")


class NoCsvFileError(BadInputError):
    """There is no file of rows."""


def find_csv_files(path: str) -> list[Path]:
    """Returns the CSV and Parquet files of `path`, sorted, as absolute paths."""
    with readable(path):
        return _find(path)


def _find(path: str) -> list[Path]:
    given_path = Path(path)
    if given_path.is_file():
        return [given_path.resolve()]
    if given_path.is_dir():
        names = sorted(item.name for item in given_path.iterdir())
        unreadable = [name for name in names if name.lower().endswith(_UNREADABLE)]
        if unreadable:
            raise BadInputError(
                f"The folder {path} holds {unreadable[0]}, which is compressed in an unsupported format. "
                "Unpack it, or move it elsewhere; .csv.gz, .csv.zst and .csv.bz2 are read as they are."
            )
        files = [given_path / name for name in names if split_name(name)[1] and not name.startswith(".")]
        for file in files:
            if not file.is_file():
                raise BadInputError(f"{file} {_describe_other(file)} Move it elsewhere, or rename it.")
        if not files:
            holds = f"it holds {', '.join(names[:5])}" if names else "it is empty"
            advice = "Give a CSV or Parquet file or the folder that contains such files."
            if any(name.lower().endswith(_SPREADSHEETS) for name in names):
                advice = "Save the sheets as CSV, and give those."
            raise NoCsvFileError(f"The folder {path} has no *.csv file ({holds}). {advice}")
        _check_forms(files)
        return [file.resolve() for file in files]
    matches = [Path(match) for match in sorted(glob.glob(path)) if Path(match).is_file()]
    if not matches and (given_path.is_symlink() or given_path.exists()):
        raise BadInputError(f"{path} {_describe_other(given_path)} Check data.path (--data).")
    if not matches:
        kind = "No file matches" if glob.has_magic(path) else "There is no file or folder"
        raise NoCsvFileError(f"{kind} {path} (in {Path.cwd()}). Check data.path (--data).")
    _check_forms(matches)
    return [match.resolve() for match in matches]


def _describe_other(place: Path) -> str:
    """Returns the end of the message for something that is named like a file of rows, but is none."""
    if place.is_dir():
        return "is a folder with the name of a data file; the files in it would not be read."
    if place.exists():
        return "is a pipe or a device. Give a file, because its rows are read more than once."
    return "is a symbolic link that leads nowhere, or back to itself."


def _check_forms(files: Sequence[Path]) -> None:
    """Checks that no file is there in two forms, and that all columns have types, or none."""
    by_name: dict[Path, Path] = {}
    for file in files:
        other = by_name.setdefault(file.parent / split_name(file.name)[0], file)
        if other.name.lower() != file.name.lower():
            raise BadInputError(
                f"{other} and {file.name} seem to be the same rows in two forms, and both would be read. "
                "Remove one, or rename it."
            )
    parquet = [file for file in files if is_parquet(file)]
    if 0 < len(parquet) < len(files):
        raise BadInputError(
            f"{parquet[0]} is a Parquet file, and there are CSV files next to it. Give only one kind."
        )
