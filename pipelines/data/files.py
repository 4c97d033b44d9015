"""Which CSV files a `data.path` means."""

import glob
import re
from pathlib import Path

from pipelines.errors import BadInputError

_SPAN = "{SPAN}"


def find_csv_files(path: str) -> list[Path]:
    """Returns the CSV files of `path`, sorted, as absolute paths.

    Args:
      path: A file, a folder (its `*.csv`), or a glob pattern. `{SPAN}` in it stands for an
        integer; the files of the largest one are returned.

    Raises:
      BadInputError: Nothing is there, or nothing that ends in `.csv`.
    """
    if _SPAN in path:
        return find_csv_files(_newest_span(path))
    place = Path(path)
    if place.is_file():
        return [place.resolve()]
    if place.is_dir():
        files = [file for file in sorted(place.glob("*.csv")) if file.is_file()]
        if not files:
            others = sorted(item.name for item in place.iterdir())
            holds = f"it holds {', '.join(others[:5])}" if others else "it is empty"
            raise BadInputError(
                f"The folder {path} has no *.csv file ({holds}). "
                "Give a CSV file or the folder that contains the CSV files."
            )
        return [file.resolve() for file in files]
    matches = [Path(match) for match in sorted(glob.glob(path)) if Path(match).is_file()]
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
