"""Kinds of files of rows, by the ends of their names: CSV, compressed CSV and Parquet."""

import os

SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".parquet")
"""Ends of the names of files of rows, in lower case."""

_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file is a Parquet file."""
    return os.fspath(path).lower().endswith(".parquet")


def codec_of(path: str) -> str | None:
    """Returns pyarrow's name of the compression of a CSV; None without one."""
    return _CODECS.get(os.path.splitext(path)[1].lower())


def split_name(name: str) -> tuple[str, str]:
    """Returns the name of a file of rows without its end, and its end as it is written; empty for another."""
    ends = [suffix for suffix in SUFFIXES if name.lower().endswith(suffix)]
    place = len(name) - len(max(ends, key=len, default=""))
    return name[:place], name[place:]
