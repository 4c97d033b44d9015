"""Fingerprints of models: all values that a model's predictions depend on, to notice changes."""

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
_MAX_DEPTH = 30
_MAX_BYTES = 1 << 16
_MODEL_PARTS = "_parts_of_predictions"
_ONLY_IN_TRAINING = ("initializer",)  # the values come from a checkpoint


class UnknownValueError(Exception):
    """A model depends on the user's code, or on an object of an unknown kind."""


def with_parts(model_fn: Callable[..., Any], parts: Iterable[Any]) -> Callable[..., Any]:
    """Returns `model_fn`, with a record of all that its predictions depend on, besides features and weights.

    `parts`: objects and functions; their attributes, and the closures of functions, count as well.
    """
    # With the function itself: `functools.wraps` copies the attribute to a function that does something else.
    setattr(model_fn, _MODEL_PARTS, (model_fn, tuple(parts)))
    return model_fn


def take_fingerprint(model_fn: Any) -> Any:
    """Returns a value that compares equal while a model's predictions can't have changed; None if unknown.

    Equal fingerprints mean the same graph. Mutable objects are in it by value. It is None for a user's
    model_fn, and for a canned model with a user's function in it: such code may read anything.
    """
    of_function, parts = getattr(model_fn, _MODEL_PARTS, (None, ()))
    if of_function is not model_fn:
        return None
    try:
        return _settled_value(parts, 0)
    except UnknownValueError:
        return None


def _settled_value(thing: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise UnknownValueError("too deep")
    kind = type(thing)
    if kind in _PLAIN:
        return (kind, repr(thing) if kind is float else thing)  # NaN equals itself
    values_of = functools.partial(_settled_values, depth=depth + 1)
    if kind in (list, tuple):
        return (kind, values_of(thing))
    if kind in (set, frozenset):
        return (kind, frozenset(values_of(thing)))
    if kind is dict:
        return (kind, values_of(thing), values_of(thing.values()))
    if kind is np.ndarray and thing.nbytes <= _MAX_BYTES and thing.dtype != object:
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
        raise UnknownValueError(f"{thing!r}")
    if isinstance(thing, tuple):  # a feature column
        names = getattr(kind, "_fields", ())
        kept = [name for name in names if name not in _ONLY_IN_TRAINING]
        return (id(kind), values_of([getattr(thing, name) for name in kept]))
    if not kind.__module__.startswith("estimator_core"):
        raise UnknownValueError(f"{thing!r}")  # its state is unknown
    state = getattr(thing, "__dict__", None)
    if state is None:
        raise UnknownValueError(f"{thing!r}")
    return (id(kind), values_of(state), values_of(state.values()))


def _settled_values(things: Iterable[Any], depth: int) -> tuple[Any, ...]:
    return tuple(_settled_value(thing, depth) for thing in things)


def _value_of_function(function: types.FunctionType, depth: int) -> Any:
    if not _is_of_a_library(function):
        raise UnknownValueError(f"{function!r}")
    module = sys.modules.get(function.__module__)
    if getattr(module, function.__name__, None) is function:
        return (types.FunctionType, id(function))
    if not function.__module__.startswith("estimator_core"):
        raise UnknownValueError(f"{function!r}")
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    held = (cells, function.__defaults__, function.__kwdefaults__)
    return (types.FunctionType, id(function.__code__), _settled_values(held, depth + 1))


def _is_of_a_library(thing: Any) -> bool:
    name = getattr(thing, "__module__", None) or ""
    return name.partition(".")[0] in _LIBRARIES
