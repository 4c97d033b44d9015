"""Cache of drawn plots: updating a page need not import matplotlib."""

import functools
import gzip
import hashlib
import json
import logging
import zlib
from pathlib import Path

from pipelines import atomic_files
from pipelines.report.plots import Plot

_LOGGER = logging.getLogger(__name__)
_CODE = ("plots.py", "svg.py")


class KeptPlots:
    """Cached plots of a page as SVG, by their content."""

    def __init__(self, file: Path):
        self._file = file
        self._kept = self._read()
        self._used: dict[str, str] = {}

    def svg_of(self, plot: Plot) -> str:
        """Returns a plot as SVG, drawn if it is not cached."""
        key = hashlib.sha256(f"{_code_hash()} {plot.content}".encode()).hexdigest()
        if key not in self._used:
            self._used[key] = self._kept.get(key) or plot.svg
        return self._used[key]

    def write(self) -> None:
        """Writes the plots that were requested, and no others."""
        if self._used == self._kept:
            return
        content = gzip.compress(json.dumps(self._used).encode(), mtime=0)
        atomic_files.write(self._file, content)

    def _read(self) -> dict[str, str]:
        try:
            values = json.loads(gzip.decompress(self._file.read_bytes()))
            return atomic_files.checked(values, dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
            _LOGGER.warning("%s cannot be read (%s): plots are drawn again", self._file, error)
            return {}


@functools.cache
def _code_hash() -> str:
    """Returns a hash of the drawing code: when it changes, plots are drawn again."""
    files = (Path(__file__).parent / name for name in _CODE)
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
