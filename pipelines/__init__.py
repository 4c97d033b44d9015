"""One-command pipelines: from a CSV to a gated, versioned, served model.

import pipelines

model = pipelines.load("pipeline_root")
model.predict([{"fare": 12.5, "company": "Prairie Cab"}])

print(pipelines.plan(data="trips.csv", label="tips"))
pipelines.run(data="trips.csv", label="tips").metrics
pipelines.run(my_tfx_pipeline, root="my_root")
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.runs.in_python import plan, run
    from pipelines.serving.model import load

__all__ = ["load", "plan", "run"]

_HOMES = {
    "load": "pipelines.serving.model",
    "plan": "pipelines.runs.in_python",
    "run": "pipelines.runs.in_python",
}


def __getattr__(name: str) -> Any:
    """Imports a function at its first use (PEP 562): the command line imports this package, too."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    with quiet_tensorflow():
        return getattr(importlib.import_module(_HOMES[name]), name)
