"""The spans that a schedule no longer runs: `ROOT/schedules/NAME/spans.json`."""

from collections.abc import Iterable
from pathlib import Path

from pipelines.atomic_files import read_json, write_json
from pipelines.errors import BadInputError


class KnownSpans:
    """The spans that a schedule has handled, and those that existed before it.

    Args:
      folder: Folder of the schedule.
    """

    def __init__(self, folder: Path):
        self._file = folder / "spans.json"

    def read(self) -> frozenset[str] | None:
        """Returns the keys of these spans; None if they were never recorded.

        Raises:
          BadInputError: The file is damaged.
        """
        try:
            keys = read_json(self._file).get("known")
        except FileNotFoundError:
            return None
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise BadInputError(
                f"{self._file} holds no list `known` of spans. Correct it; or remove it: then all spans that "
                "are there now, up to the newest that was run, count as known."
            )
        return frozenset(keys)

    def add(self, keys: Iterable[str]) -> None:
        """Adds spans; creates the file if necessary."""
        known = self.read()
        added = (known or frozenset()).union(keys)
        if added != known:
            write_json(self._file, {"known": sorted(added)})
