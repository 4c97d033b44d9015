"""Kinds of files of rows, by the ends of their names: CSV, compressed CSV and Parquet."""

import os

SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".parquet")
"""Ends of the names of files of rows, in lower case."""

_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def is_parquet(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).lower().endswith(".parquet")


def compression_codec(path: str) -> str | None:
    """Returns pyarrow's name of the compression of a CSV, or None."""
    return _CODECS.get(os.path.splitext(path)[1].lower())


def split_name(name: str) -> tuple[str, str]:
    """Returns the name of a file of rows without its suffix, and the suffix as written, or an empty one."""
    ends = [suffix for suffix in SUFFIXES if name.lower().endswith(suffix)]
    length = len(name) - len(max(ends, key=len, default=""))
    return name[:length], name[length:]
