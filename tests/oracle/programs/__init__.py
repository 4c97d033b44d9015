"""All programs and scenarios by name; each module adds its own dicts."""

from tests.oracle.programs import canned, columns, heads, kmeans, rnn, sdca, v1
from tests.oracle.programs.program import Program, Scenario

_MODULES = (canned, columns, heads, kmeans, rnn, sdca, v1)

PROGRAMS: dict[str, Program] = {}
SCENARIOS: dict[str, Scenario] = {}
MODEL_DIRS: list[str] = []  # programs of which model_dirs/ has a directory that the reference wrote
for _module in _MODULES:
    PROGRAMS |= getattr(_module, "PROGRAMS", {})
    SCENARIOS |= getattr(_module, "SCENARIOS", {})
    MODEL_DIRS += getattr(_module, "MODEL_DIRS", [])
