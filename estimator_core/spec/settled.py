"""Whether a model can have become another one since it was built: all that it depends on, by value."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

_LIBRARIES = ("estimator_core", "keras", "tensorflow", "tf_keras")
_PLAIN = (bool, bytes, complex, float, int, str, type(None), tf.DType)
_MOST_DEEP = 30
_MOST_BYTES = 1 << 16
_MODEL_PARTS = "_parts_of_predictions"
_ONLY_IN_TRAINING = ("initializer",)  # a checkpoint has the values


class NotSettledError(Exception):
    """Something that a model depends on is code of the user's, or of a kind that is not known."""


def with_parts(model_fn: Callable[..., Any], parts: Iterable[Any]) -> Callable[..., Any]:
    """Returns `model_fn`, with a note of all that its predictions depend on, beside features and weights.

    Args:
        model_fn: A model_fn of this package.
        parts: Objects and functions; what they hold, and the closures of the functions, count as well.
    """
    setattr(model_fn, _MODEL_PARTS, tuple(parts))
    return model_fn


def fingerprint_of(model_fn: Any) -> Any:
    """Returns what the predictions of a model depend on, to compare it; None if that is not known.

    Equal fingerprints are those of the same graph. What is mutable is in it by value. A model_fn of the
    user's has none, nor has a premade model with a function of the user's in it: such code may read anything.
    """
    parts = getattr(model_fn, _MODEL_PARTS, None)
    if parts is None:
        return None
    try:
        return _value_of(parts, 0)
    except NotSettledError:
        return None


def _value_of(thing: Any, depth: int) -> Any:
    if depth > _MOST_DEEP:
        raise NotSettledError("too deep")
    kind = type(thing)
    if kind in _PLAIN:
        return (kind, repr(thing) if kind is float else thing)  # NaN equals itself
    values_of = functools.partial(_values_of, depth=depth + 1)
    if kind in (list, tuple):
        return (kind, values_of(thing))
    if kind in (set, frozenset):
        return (kind, frozenset(values_of(thing)))
    if kind is dict:
        return (kind, values_of(thing), values_of(thing.values()))
    if kind is np.ndarray and thing.nbytes <= _MOST_BYTES and thing.dtype != object:
        return (kind, thing.dtype.str, thing.shape, thing.tobytes())
    if isinstance(thing, (np.generic, tf.TensorShape)):
        return (kind, repr(thing))
    if kind is functools.partial:
        return (kind, values_of((thing.func, thing.args, thing.keywords)))
    if isinstance(thing, types.FunctionType):
        return _value_of_function(thing, depth)
    if isinstance(thing, types.MethodType):
        return (kind, values_of((thing.__func__, thing.__self__)))
    if isinstance(thing, (type, types.BuiltinFunctionType)) and _is_of_a_library(thing):
        return (kind, id(thing))
    if not _is_of_a_library(kind):
        raise NotSettledError(f"{thing!r}")
    if isinstance(thing, tuple):  # a feature column
        names = getattr(kind, "_fields", ())
        kept = [name for name in names if name not in _ONLY_IN_TRAINING]
        return (id(kind), values_of([getattr(thing, name) for name in kept]))
    if not kind.__module__.startswith("estimator_core"):
        raise NotSettledError(f"{thing!r}")  # what it keeps is not known
    state = getattr(thing, "__dict__", None)
    if state is None:
        raise NotSettledError(f"{thing!r}")
    return (id(kind), values_of(state), values_of(state.values()))


def _values_of(things: Iterable[Any], depth: int) -> tuple[Any, ...]:
    return tuple(_value_of(each, depth) for each in things)


def _value_of_function(function: types.FunctionType, depth: int) -> Any:
    if not _is_of_a_library(function):
        raise NotSettledError(f"{function!r}")
    module = sys.modules.get(function.__module__)
    if getattr(module, function.__name__, None) is function:
        return (types.FunctionType, id(function))
    if not function.__module__.startswith("estimator_core"):
        raise NotSettledError(f"{function!r}")
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    held = (cells, function.__defaults__, function.__kwdefaults__)
    return (types.FunctionType, id(function.__code__), _values_of(held, depth + 1))


def _is_of_a_library(thing: Any) -> bool:
    name = getattr(thing, "__module__", None) or ""
    return name.partition(".")[0] in _LIBRARIES
