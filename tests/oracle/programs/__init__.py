"""All programs and scenarios by name; each module adds its own dicts."""

from tests.oracle.programs import (
    canned,
    columns,
    custom,
    heads,
    hooks,
    kmeans,
    legacy_keras,
    log_lines,
    predict_and_export,
    rnn,
    sdca,
    tpu,
    train_and_evaluate,
    v1,
    warm_start,
)
from tests.oracle.programs.program import Program, Scenario

_MODULES = (
    canned,
    columns,
    custom,
    heads,
    hooks,
    kmeans,
    legacy_keras,
    log_lines,
    predict_and_export,
    rnn,
    sdca,
    tpu,
    train_and_evaluate,
    v1,
    warm_start,
)

PROGRAMS: dict[str, Program] = {}
SCENARIOS: dict[str, Scenario] = {}
MODEL_DIRS: list[str] = []  # programs of which model_dirs/ has a directory that the reference wrote
for _module in _MODULES:
    PROGRAMS |= getattr(_module, "PROGRAMS", {})
    SCENARIOS |= getattr(_module, "SCENARIOS", {})
    MODEL_DIRS += getattr(_module, "MODEL_DIRS", [])
