"""Predicts CSV files on the engine of `[beam]`: a file of predictions for each file of rows."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from components.beam.spread import Spread
from pipelines.data.byte_checks import readable
from pipelines.data.files import find_csv_files
from pipelines.errors import BadInputError
from pipelines.serving.files import Reading, predict_files
from pipelines.serving.model import Model


def predict_on_engine(
    model: Path,
    data: str,
    output: Path,
    reading: Reading,
    beam_options: Sequence[str],
    say: Callable[[str], None],
) -> int:
    """Writes a folder of predictions, `part-00000-of-00004.csv` and so on, and returns the number of rows.

    A worker predicts a file at a time, as `predict_files` does, so more files than workers use all of them.
    The engine's workers read the model and the data, and write the folder, by the same paths.

    `data`: folder of CSVs, or pattern. The parts have the order of the files' names.
    `output`: folder to write, which appears when it is complete. The parts are Parquet if its name ends in
    `.parquet`, otherwise CSV.
    """
    with readable(data, "--data"):
        files = find_csv_files(data)
    output = Path(os.path.abspath(output))  # workers have other working directories
    if os.path.lexists(output):
        raise BadInputError(
            f"{output} exists. With --runner beam, -o names a new folder, which gets a file of "
            "predictions for each file of --data."
        )
    unfinished = output.with_name(f".{output.name}.{os.getpid()}.partial")
    try:
        unfinished.mkdir()
    except OSError as error:
        raise BadInputError(f"The folder {unfinished} cannot be made: {error}") from error
    suffix = ".parquet" if output.suffix == ".parquet" else ".csv"
    parts = [unfinished / f"{number}{suffix}" for number in range(len(files))]
    try:
        with beam.Pipeline(options=PipelineOptions(list(beam_options))) as pipeline:
            given = pipeline | "Files" >> Spread(list(zip(files, parts, strict=True)))
            _ = given | "Predict" >> beam.ParDo(_PredictFile(model, reading))
        num_rows = _finish(files, parts, say)
        unfinished.rename(output)
        return num_rows
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _finish(files: Sequence[Path], parts: Sequence[Path], say: Callable[[str], None]) -> int:
    """Checks what the workers have written, gives the parts their names, and returns the number of rows."""
    notes = [_read_note(part) for part in parts]
    for line in dict.fromkeys(line for note in notes for line in note["said"]):
        say(line)
    for note in notes:
        if note["error"] is not None:
            raise BadInputError(note["error"])
    given = [item for item in zip(files, parts, notes, strict=True) if item[2]["rows"]]
    if not given:
        raise BadInputError(f"{files[0]}: there is a header (line 1) but no row below it.")
    (first, first_part, _), *_ = given
    columns = _columns_of(first_part)
    for file, part, _ in given:
        if _columns_of(part) != columns:
            raise BadInputError(
                f"{file} has other columns than {first}. Predict the files apart, or give them one header."
            )
    for part in parts:
        _note_of(part).unlink()
    for number, (_, part, _) in enumerate(given):
        part.rename(part.with_name(f"part-{number:05d}-of-{len(given):05d}{part.suffix}"))
    for part in parts:
        part.unlink(missing_ok=True)  # of a file without rows
    return sum(note["rows"] for note in notes)


def _columns_of(part: Path) -> Any:
    if part.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_schema(part).names
    with part.open("rb") as stream:
        return stream.readline()


class _PredictFile(beam.DoFn):
    """(file of rows, file to write) -> nothing; beside the file stands a note of how it went."""

    def __init__(self, model: Path, reading: Reading) -> None:
        self._folder, self._reading = model, reading

    def setup(self) -> None:
        """Loads the model."""
        self._model = Model(self._folder)

    def process(self, file: tuple[Path, Path]) -> Iterator[Any]:
        data, part = file
        said: list[str] = []
        note: dict[str, Any] = {"rows": 0, "said": said, "error": None}
        try:
            note["rows"] = predict_files(
                self._model, str(data), part, self._reading, said.append, may_be_empty=True
            )
        except BadInputError as error:  # Beam would put pages of its own around it
            note["error"] = str(error)
        _note_of(part).write_text(json.dumps(note))
        yield from ()


def _note_of(part: Path) -> Path:
    return part.with_suffix(".json")


def _read_note(part: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_note_of(part).read_text())
    return found
