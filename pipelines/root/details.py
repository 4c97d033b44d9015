"""Details for the report of a run beyond its record: statistics, curves, plots. One JSON file a section.

They are kept apart from the record because `runs` and `lineage` read the record of every run.
"""

import json
import logging
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.errors import DamagedFileError

Details = dict[str, Any]
"""The values of a section, as JSON."""

SECTIONS = ("statistics", "anomalies", "search", "training", "signatures", "evaluation", "serving_check")
"""Sections. They come from StatisticsGen, ExampleValidator, Tuner, Trainer, Evaluator and ServingCheck."""

_LOGGER = logging.getLogger(__name__)


class RunDetails:
    """The details of one run, below `ROOT/runs/details/<run_id>`."""

    def __init__(self, folder: Path):
        self.folder = folder

    def write(self, section: str, values: Details) -> None:
        """Stores a section, atomically."""
        if section not in SECTIONS:
            raise ValueError(f"section must be one of {', '.join(SECTIONS)}. Received: section={section!r}")
        content = json.dumps(values, allow_nan=False)
        atomic_files.write(self.folder / f"{section}.json", content)

    def read(self, section: str) -> Details | None:
        """Returns a section; None if it was not recorded, or cannot be read (with a warning)."""
        file = self.folder / f"{section}.json"
        try:
            return atomic_files.read_model(file, Details)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            _LOGGER.warning("%s It is left out.", error)
            return None

    @property
    def bad_rows(self) -> Path:
        """Path of the rows that the run left out, as CSV."""
        return self.folder / "bad_rows.csv"

    def read_all(self) -> dict[str, Details]:
        """Returns all recorded sections."""
        sections = ((section, self.read(section)) for section in SECTIONS)
        return {section: values for section, values in sections if values is not None}

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.json"))
