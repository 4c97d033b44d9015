"""The spans that a schedule does not run any more: `ROOT/schedules/NAME/spans.json`."""

from collections.abc import Iterable
from pathlib import Path

from pipelines.atomic_files import read_json, write_json
from pipelines.errors import BadInputError


class KnownSpans:
    """The spans that a schedule has dealt with, and those that were there before it.

    Args:
      folder: Of the schedule.
    """

    def __init__(self, folder: Path):
        self._file = folder / "spans.json"

    def read(self) -> frozenset[str] | None:
        """Returns the keys of these spans; None if they were never written down.

        Raises:
          BadInputError: The file is damaged.
        """
        try:
            keys = read_json(self._file).get("known")
        except FileNotFoundError:
            return None
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise BadInputError(
                f"{self._file} holds no list `known` of spans. Mend it; or remove it: then all spans that "
                "are there now, up to the newest that was run, are taken for known."
            )
        return frozenset(keys)

    def add(self, keys: Iterable[str]) -> None:
        """Adds spans; the file is there from then on."""
        known = self.read()
        added = (known or frozenset()).union(keys)
        if added != known:
            write_json(self._file, {"known": sorted(added)})
