"""Parameters of a run from the command line."""

import json
from collections.abc import Mapping
from typing import Any

from components.nearest import nearest_first
from pipelines.errors import BadInputError

_TYPES: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "NUMBER_INTEGER": ("a whole number", int),
    "NUMBER_DOUBLE": ("a number", (int, float)),
    "BOOLEAN": ("true or false", bool),
}


def typed_parameters(specification: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of a run in the types that the pipeline declares."""
    declared = specification["root"].get("inputDefinitions", {}).get("parameters", {})
    typed: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in declared:
            nearest = nearest_first(name, declared)
            raise BadInputError(
                f"--param {name}: the pipeline has no such parameter. Did you mean {nearest[0]}? "
                f"Parameters: {', '.join(nearest)}."
            )
        kind = declared[name]["parameterType"]
        typed[name] = text if kind == "STRING" else _parse(name, text, kind)
    return typed


def _parse(name: str, text: str, kind: str) -> Any:
    words, types = _TYPES[kind]
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise BadInputError(f"--param {name} takes {words}. Received: {text!r}")
    return value
