"""What a function reads besides its arguments, to see whether it has changed."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

_PLAIN = (bool, bytes, complex, float, int, str, type(None))
_LARGE = 1000


def surroundings_of(function: Any) -> str:
    """Returns a text that changes when what the function reads does.

    That are the variables outside of it that it names, what a `functools.partial` holds, and the
    attributes of the object whose method it is; for functions of its own module, also what those read.
    Numbers, texts and collections of up to 1,000 of them are compared by value, all else by identity.
    """
    return repr(_described(function, getattr(function, "__module__", None), set()))


def _described(value: Any, module: str | None, seen: set[int]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if id(value) in seen:
        return id(value)
    seen.add(id(value))

    def described(inner: Any) -> Any:
        return _described(inner, module, seen)

    if type(value) in (dict, list, tuple, set, frozenset) and len(value) > _LARGE:
        return id(value), len(value)  # a vocabulary, say: to look at it each time would take long
    if type(value) in (list, tuple, set, frozenset):
        return type(value).__name__, [described(item) for item in value]
    if type(value) is dict:
        return [(described(key), described(item)) for key, item in value.items()]
    if isinstance(value, functools.partial):
        return [described(part) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, types.MethodType):
        return described(value.__func__), described(vars(value.__self__))
    if isinstance(value, types.FunctionType) and value.__module__ == module:
        read = inspect.getclosurevars(value)
        return id(value), described(dict(read.nonlocals)), described(dict(read.globals))
    if module is not None and type(value).__module__ == module and hasattr(value, "__dict__"):
        return id(value), described(vars(value))
    return id(value)
