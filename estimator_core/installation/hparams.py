"""HParams of tf.contrib.training."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

_ASSIGNMENT = re.compile(r"\s*([a-zA-Z]\w*)\s*(?:\[(\d+)\])?\s*=\s*(?:\[([^\]]*)\]|([^,\[]*))(?:$|,)")
_BOOLEANS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


class HParams:
    """Hyperparameters as attributes, whose types are those of their first values.

    Example:
        >>> hparams = HParams(learning_rate=0.1, layers=[8, 4])
        >>> hparams.parse("learning_rate=0.5,layers=[16]").learning_rate
        0.5
        >>> hparams.values()
        {'learning_rate': 0.5, 'layers': [16]}

    Args:
        hparam_def: Must be None; there is no protocol buffer of HParams any more.
        model_structure: Ignored.
        **hparams: Initial values.

    Source: `tf.contrib.training.HParams` of TensorFlow 1.15.
    """

    def __init__(self, hparam_def: None = None, model_structure: Any = None, **hparams: Any):
        if hparam_def is not None:
            raise ValueError("HParams can't read a HParamDef here. Use HParams(**values).")
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        for name, value in hparams.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter, whose name must be new."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets an existing hyperparameter to a value of its type."""
        if name not in self._hparam_types:
            raise KeyError(f"Unknown hyperparameter. Received: {name!r}. It has {sorted(self.values())}.")
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) != is_list:
            wanted = "a list" if is_list else "a single value"
            raise ValueError(f"Hyperparameter {name!r} must be {wanted}. Received: {value!r}")
        setattr(self, name, [_cast(name, kind, v) for v in value] if is_list else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if there is one of this name."""
        if self._hparam_types.pop(name, None):
            delattr(self, name)

    def parse(self, values: str) -> HParams:
        """Sets hyperparameters by text such as "rate=0.1,layers=[8,4],layers[1]=2"."""
        position = 0
        changes: dict[str, Any] = {}
        while position < len(values):
            match = _ASSIGNMENT.match(values, position)
            if match is None:
                raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
            position = match.end()
            name, index, items, item = match.groups()
            if name not in self._hparam_types:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            kind = self._hparam_types[name][0]
            if items is not None:
                changes[name] = [_parsed(name, kind, text) for text in re.split("[ ,]+", items) if text]
            elif index is not None:
                changes.setdefault(name, list(getattr(self, name)))[int(index)] = _parsed(name, kind, item)
            else:
                changes[name] = _parsed(name, kind, item)
        return self.override_from_dict(changes)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets existing hyperparameters."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Sets existing hyperparameters by a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """Returns the hyperparameters as a JSON object."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """Returns the hyperparameters as a dict."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a hyperparameter, or `default` if there is none of this name."""
        return getattr(self, key) if key in self._hparam_types else default

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __repr__(self) -> str:
        return f"HParams({sorted(self.values().items())})"


def _cast(name: str, kind: type, value: Any) -> Any:
    """Returns the value as its hyperparameter's type, which may make a float of an integer."""
    if kind in (type(None), type(value)):
        return value
    if (
        issubclass(kind, bool) != isinstance(value, bool)
        or (issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral))
        or (issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number))
    ):
        raise ValueError(f"Hyperparameter {name!r} is of type {kind.__name__}. Received: {value!r}")
    return kind(value)


def _parsed(name: str, kind: type, text: str) -> Any:
    try:
        return _BOOLEANS[text] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"Could not parse hyperparameter {name!r} of type {kind.__name__}. Received: {text!r}"
        ) from error
