"""Compresses the values that Beam's workers exchange, so that large groups need little memory."""

import pickle
from typing import Any

import pyarrow as pa

_CODEC = "zstd"

Compressed = tuple[int, bytes]
"""Number of bytes without compression, and the compressed bytes."""


def compress(value: Any) -> Compressed:
    """Returns a value in compressed form; it works best for several thousand rows together."""
    content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(content), pa.compress(content, _CODEC, asbytes=True)


def decompress(packed: Compressed) -> Any:
    num_bytes, content = packed
    return pickle.loads(pa.decompress(content, num_bytes, _CODEC, asbytes=True))
