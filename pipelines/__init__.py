"""One-command pipelines: from a CSV to a gated, versioned, served model.

import pipelines

model = pipelines.load("pipeline_root")
model.predict([{"fare": 12.5, "company": "Prairie Cab"}])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.serving.load import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """Imports `load` at its first use (PEP 562): the command line imports this package, too."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipelines.serving.load import load

    return load
