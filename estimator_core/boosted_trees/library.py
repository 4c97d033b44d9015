"""The library that grows the trees: LightGBM, an optional dependency."""

from __future__ import annotations

import importlib
from typing import Any

INSTALL_COMMAND = "pip install 'estimator-pipelines[boosted-trees]'"


def lightgbm() -> Any:
    """Returns the module `lightgbm`.

    Raises:
        ImportError: It is not installed, or a system library that it needs is missing.
    """
    try:
        return importlib.import_module("lightgbm")
    except ImportError as error:
        raise ImportError(
            "Growing boosted trees, and explaining them by TreeSHAP, needs LightGBM: run "
            f"`{INSTALL_COMMAND}`, or `pip install lightgbm`. Evaluation, prediction and export "
            "work without it."
        ) from error
    except OSError as error:
        raise ImportError(
            f"LightGBM is installed but can't be loaded: {error}. If libgomp is missing, run "
            "`apt-get install libgomp1`, or `dnf install libgomp`."
        ) from error
