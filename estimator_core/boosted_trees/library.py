"""The library that grows the trees: LightGBM, an optional dependency."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from typing import Any

_WAIT_POLICY = "OMP_WAIT_POLICY"


def lightgbm() -> Any:
    """Returns the module `lightgbm`.

    Its first import makes OpenMP's threads sleep while they wait, unless the environment says otherwise. By
    default they spin, which takes ten times as long where other processes use the cores.
    """
    try:
        with _sleeping_threads():
            return importlib.import_module("lightgbm")
    except ImportError as error:
        raise ImportError(
            "Growing boosted trees, and explaining them by TreeSHAP, needs LightGBM: run `pip install "
            "lightgbm`. Evaluation, prediction and export work without it."
        ) from error
    except OSError as error:
        raise ImportError(
            f"LightGBM is installed but can't be loaded: {error}. If libgomp is missing, run "
            "`apt-get install libgomp1`, or `dnf install libgomp`."
        ) from error


@contextlib.contextmanager
def _sleeping_threads() -> Iterator[None]:
    """Sets the environment variable that OpenMP reads when it is loaded."""
    if _WAIT_POLICY in os.environ or "GOMP_SPINCOUNT" in os.environ:
        yield
        return
    os.environ[_WAIT_POLICY] = "PASSIVE"
    try:
        yield
    finally:
        del os.environ[_WAIT_POLICY]
