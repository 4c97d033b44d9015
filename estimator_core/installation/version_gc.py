"""Filters that choose which numbered exports to keep, for users' own exporters.

Source: `tensorflow_estimator.python.estimator.gc`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf


class Path(NamedTuple):
    """A directory and the version in its name."""

    path: str
    export_version: int | None  # Version of the directory; None before a parser has found it


Filter = Callable[[Sequence[Path]], list[Path]]


def _largest_export_versions(n: int) -> Filter:
    def keep(paths: Sequence[Path]) -> list[Path]:
        return sorted(sorted(paths, key=_version, reverse=True)[:n])

    return keep


def _one_of_every_n_export_versions(n: int) -> Filter:
    """Returns a filter for the largest version among 1 to n, among n+1 to 2n, and so on."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        # int() rounds towards 0, so version 0 belongs to the first n, except for n = 1.
        kept = {int((_version(path) - 1) / n): path for path in sorted(paths, key=_version)}
        return sorted(kept.values())

    return keep


def _mod_export_version(n: int) -> Filter:
    """Returns a filter for the versions that `n` divides."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        return sorted(path for path in paths if _version(path) % n == 0)

    return keep


def _union(first: Filter, second: Filter) -> Filter:
    """Returns a filter for the paths that either filter keeps."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        return sorted({*first(paths), *second(paths)})

    return keep


def _negation(keep: Filter) -> Filter:
    """Returns a filter for the paths that another filter drops."""

    def drop(paths: Sequence[Path]) -> list[Path]:
        return sorted(set(paths) - set(keep(paths)))

    return drop


def _get_paths(base_dir: str, parser: Callable[[Path], Path | None]) -> list[Path]:
    """Returns the entries of a directory for which `parser` does not return None."""
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(base_dir)]
    parsed = [parser(Path(os.path.join(base_dir, name), None)) for name in names]
    return sorted(path for path in parsed if path is not None)


def _version(path: Path) -> int:
    if path.export_version is None:
        raise ValueError(f"The path has no version yet; a parser gives it one. Received: {path}")
    return path.export_version
