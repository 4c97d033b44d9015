"""Finds the CSV files of a `data.path`."""

import glob
from pathlib import Path

from pipelines.data.byte_checks import readable
from pipelines.errors import BadInputError

_COMPRESSED = (".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".csv.zst")


class NoCsvFileError(BadInputError):
    """There is no CSV file."""


def find_csv_files(path: str) -> list[Path]:
    """Returns the CSV files of `path`, sorted, as absolute paths.

    Args:
      path: File, folder (its `*.csv` files, also with capital letters), or glob pattern.

    Raises:
      NoCsvFileError: Nothing is there, or nothing that ends in `.csv`.
      BadInputError: Something cannot be read, or a folder also holds a compressed CSV.
    """
    with readable(path):
        return _find(path)


def _find(path: str) -> list[Path]:
    place = Path(path)
    if place.is_file():
        return [place.resolve()]
    if place.is_dir():
        names = sorted(item.name for item in place.iterdir())
        compressed = [name for name in names if name.lower().endswith(_COMPRESSED)]
        if compressed:
            raise BadInputError(
                f"The folder {path} holds {compressed[0]}, which is compressed and would not be "
                "read. Unpack it, or move it elsewhere."
            )
        files = [
            place / name
            for name in names
            if name.lower().endswith(".csv")
            and not name.startswith(".")
            and (place / name).is_file()
        ]
        if not files:
            holds = f"it holds {', '.join(names[:5])}" if names else "it is empty"
            raise NoCsvFileError(
                f"The folder {path} has no *.csv file ({holds}). "
                "Give a CSV file or the folder that contains the CSV files."
            )
        return [file.resolve() for file in files]
    matches = [Path(match) for match in sorted(glob.glob(path)) if Path(match).is_file()]
    if not matches and place.is_symlink():
        raise BadInputError(
            f"{path} is a symbolic link that leads nowhere, or back to itself. Check data.path (--data)."
        )
    if not matches:
        kind = "No file matches" if glob.has_magic(path) else "There is no file or folder"
        raise NoCsvFileError(f"{kind} {path} (seen from {Path.cwd()}). Check data.path (--data).")
    return [match.resolve() for match in matches]
