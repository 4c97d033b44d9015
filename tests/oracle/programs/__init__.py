"""All programs and scenarios by name; each module of this package adds its own dicts."""

import importlib
import pkgutil

from tests.oracle.programs.program import Program, Scenario

PROGRAMS: dict[str, Program] = {}
SCENARIOS: dict[str, Scenario] = {}
MODEL_DIRS: list[str] = []  # programs of which model_dirs/ has a directory that the reference wrote
for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    PROGRAMS |= getattr(_module, "PROGRAMS", {})
    SCENARIOS |= getattr(_module, "SCENARIOS", {})
    MODEL_DIRS += getattr(_module, "MODEL_DIRS", [])
