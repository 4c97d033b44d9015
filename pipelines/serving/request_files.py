"""Samples of the rows of requests, in files of JSON lines: bounded in rows, bytes, and number of files."""

import contextlib
import json
import random
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.serving.cells import Cells

MAX_ROWS = 1_000
"""Rows of a window, unless a limit says otherwise."""

_FILE = re.compile(r"(\d+)-(\d+)-(\d+)\.jsonl")  # version, start in Unix seconds, a server's number


@dataclass(frozen=True)
class SampleLimits:
    share: float  # Share of the rows to draw, from 0 to 1
    max_rows: int = MAX_ROWS  # Rows of a window; of more, each has the same chance to stay
    # Size of a window's file, which lowers the number of rows if they are long. A row of more than
    # a hundredth of it is not kept.
    max_bytes: int = 4 << 20
    window_secs: float = 3_600.0  # Time after which a new file begins. Each version has its own windows.
    max_files: int = 24  # Number of files that stay, of all versions


@dataclass
class _Window:
    version: int
    end_secs: float
    file: str
    max_rows: int
    num_seen: int = 0
    num_bytes: int = 0
    lines: list[str] = field(default_factory=list)
    is_written: bool = True


class RequestSample:
    """Draws rows of requests, and writes them to files."""

    def __init__(
        self, folder: Path, limits: SampleLimits, clock: Callable[[], float], seed: int | None = None
    ):
        self._folder = folder
        self._limits = limits
        self._clock = clock
        self._random = random.Random(seed)
        self._windows: list[_Window] = []  # those that are open or not yet written
        self._last_start = 0
        self._number = secrets.randbelow(2**31)  # pods that share the folder may have the same process ID
        self._lock = threading.Lock()

    def add(self, version: int, cells: Cells, num_rows: int) -> None:
        for row in range(num_rows):
            if self._random.random() < self._limits.share:
                present = {
                    name: _plain(values[row]) for name, values in cells.items() if values[row] is not None
                }
                self._add(version, f"{json.dumps(present)}\n")  # in ASCII

    def write(self) -> None:
        """Writes new rows, and removes files beyond the limit."""
        with self._lock:
            windows = list(self._windows)
        for window in windows:
            self._write(window)
        for file in _files(self._folder)[: -self._limits.max_files]:
            file.unlink(missing_ok=True)
        with self._lock:
            now = self._clock()
            self._windows = [
                window for window in self._windows if now < window.end_secs or not window.is_written
            ]

    def _write(self, window: _Window) -> None:
        with self._lock:
            if window.is_written:
                return
            window.is_written = True
            text = "".join(window.lines)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            atomic_files.write(self._folder / window.file, text, private=True)
        except OSError:
            window.is_written = False
            raise

    def _add(self, version: int, line: str) -> None:
        if len(line) > self._limits.max_bytes // 100:
            return
        with self._lock:
            window = self._open_window(version)
            window.num_seen += 1
            # Reservoir sampling: each row of the window has the same chance to stay.
            position = len(window.lines)
            if position >= window.max_rows:
                position = self._random.randrange(window.num_seen)
                if position >= window.max_rows:
                    return
            window.num_bytes += len(line) - sum(map(len, window.lines[position : position + 1]))
            window.lines[position : position + 1] = [line]
            while window.num_bytes > self._limits.max_bytes:
                removed = window.lines.pop(self._random.randrange(len(window.lines)))
                window.num_bytes -= len(removed)
                window.max_rows = len(window.lines)
            window.is_written = False

    def _open_window(self, version: int) -> _Window:
        limits, now = self._limits, self._clock()
        for window in self._windows:
            if window.version == version and now < window.end_secs:
                return window
        self._last_start = max(int(now), self._last_start + 1)  # no two files have the same name
        file = f"{version}-{self._last_start}-{self._number}.jsonl"
        window = _Window(version, now + limits.window_secs, file, limits.max_rows)
        self._windows.append(window)
        del self._windows[: -limits.max_files]  # as of the files
        return window


def sampled_rows(folder: Path, version: int, max_rows: int) -> list[dict[str, Any]]:
    """Returns the newest sampled rows of a version: whole files, until there are enough rows."""
    rows: list[dict[str, Any]] = []
    for file in reversed(_files(folder)):
        if len(rows) >= max_rows:
            break
        if _numbers(file)[0] == version:
            with contextlib.suppress(FileNotFoundError):  # removed by a server since
                for line in file.read_text(encoding="utf-8").splitlines():
                    with contextlib.suppress(ValueError):  # half a line, left by a server that was killed
                        rows.append(atomic_files.checked(json.loads(line), dict[str, Any]))
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _files(folder: Path) -> list[Path]:
    """Returns the files of a folder, oldest first."""
    files = [file for file in folder.glob("*.jsonl") if _FILE.fullmatch(file.name)]
    return sorted(files, key=lambda file: _numbers(file)[1:])


def _numbers(file: Path) -> tuple[int, ...]:
    match = _FILE.fullmatch(file.name)
    assert match is not None
    return tuple(map(int, match.groups()))
