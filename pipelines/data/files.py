"""Which CSV files a `data.path` means."""

import glob
import re
from pathlib import Path

from pipelines.data.byte_checks import readable
from pipelines.errors import BadInputError

_SPAN = "{SPAN}"
_COMPRESSED = (".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".csv.zst")


def find_csv_files(path: str) -> list[Path]:
    """Returns the CSV files of `path`, sorted, as absolute paths.

    Args:
      path: A file, a folder (its `*.csv`, in capitals, too), or a glob pattern. `{SPAN}` in it stands for an
        integer; the files of the largest one are returned.

    Raises:
      BadInputError: Nothing is there, nothing that ends in `.csv`, something that cannot be read,
        or a folder that holds a compressed CSV, too.
    """
    with readable(path):
        return _find(path)


def _find(path: str) -> list[Path]:
    if _SPAN in path:
        return _find(_newest_span(path))
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
            raise BadInputError(
                f"The folder {path} has no *.csv file ({holds}). "
                "Give a CSV file or the folder that contains the CSV files."
            )
        return [file.resolve() for file in files]
    matches = [Path(match) for match in sorted(glob.glob(path)) if Path(match).is_file()]
    if not matches and place.is_symlink():
        raise BadInputError(
            f"{path} is a symbolic link that leads nowhere, or back to itself. Check data.path."
        )
    if not matches:
        kind = "No file matches" if glob.has_magic(path) else "There is no file or folder"
        raise BadInputError(f"{kind} {path} (seen from {Path.cwd()}). Check data.path.")
    return [match.resolve() for match in matches]


def _newest_span(path: str) -> str:
    """Returns `path` with `{SPAN}` replaced by the digits of the largest span on disk."""
    expression = re.escape(path).replace(re.escape(_SPAN), r"(\d+)", 1)
    expression = (
        expression.replace(re.escape(_SPAN), r"\1").replace(r"\*", r"[^/]*").replace(r"\?", r"[^/]")
    )
    matches = (re.fullmatch(expression, found) for found in glob.glob(path.replace(_SPAN, "*")))
    spans = [match.group(1) for match in matches if match]
    if not spans:
        raise BadInputError(
            f"No span matches {path} (seen from {Path.cwd()}): {_SPAN} stands for an integer, "
            "as in data/span-1/."
        )
    return path.replace(_SPAN, max(spans, key=int))
