"""All programs and scenarios by name; each module adds its own `PROGRAMS` and `SCENARIOS`."""

from tests.oracle.programs import canned, heads, v1
from tests.oracle.programs.program import Program, Scenario

_MODULES = (canned, heads, v1)

PROGRAMS: dict[str, Program] = {}
SCENARIOS: dict[str, Scenario] = {}
for _module in _MODULES:
    PROGRAMS |= getattr(_module, "PROGRAMS", {})
    SCENARIOS |= getattr(_module, "SCENARIOS", {})
