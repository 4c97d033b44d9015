"""The last lines of a run on a terminal: its report, a prediction, a server."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.root import Root
    from pipelines.root.records import RunRecord


def next_steps(record: "RunRecord", root: "Root", program: str) -> list[str]:
    """Returns one line for each thing to do after a run: commands that can be copied."""
    lines = []
    if record.report:
        lines.append(f"look at the report:  {shlex.quote(_short(record.report))}")
    if record.status == "held":
        run_id = record.same_as or record.run_id
        place = f"--root {shlex.quote(_short(root))}"
        lines.append(
            f"decide:              {_callable(program)} approve {run_id} {place} --because TEXT"
        )
    if record.version or record.serving_version:
        command, place = _callable(program), f"--root {shlex.quote(_short(root))}"
        # A TFX pipeline of the user's own may have read something else than CSVs.
        files = (file["path"] for file in record.data_files if file["path"].endswith(".csv"))
        data = record.section("data").get("path") or next(files, None)
        if data is not None:
            rows = shlex.quote(_short(data)) if Path(data).exists() else "NEW.csv"
            lines.append(f"get predictions:     {command} predict {place} --data {rows}")
        lines.append(f"serve the model:     {command} serve {place}")
    return lines


def _short(path: str | os.PathLike[str]) -> str:
    """Returns a path, relative to the working directory if it is inside."""
    absolute = Path(path).absolute()
    inside = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd()) if inside else absolute)


def _callable(program: str) -> str:
    """Returns a program as this shell finds it: its environment may not be active, as in `make demo`."""
    word, *rest = program.split()
    own = Path(sys.executable).parent / word
    found = shutil.which(word)
    is_found = found is not None and Path(found).absolute() == own.absolute()
    return " ".join([word if is_found else shlex.quote(_short(own)), *rest])
