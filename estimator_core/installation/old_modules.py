"""The modules inside tensorflow_estimator 2.15 and tf.contrib, by their former paths.

These paths were never public, but many programs use them. `OldModuleFinder` makes them importable, with the
names that `old_places` lists.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from estimator_core.installation.old_places import ALIASES, CONTRIB_ROOT, PLACES, instead_of

_MANAGED = ("tensorflow_estimator", "tensorflow.python.estimator")


class _OldModule(types.ModuleType):
    """A module of the original, which looks up its names on access."""

    __path__: list[str] = []  # each may be a package; the finder knows its modules

    def __getattr__(self, name: str) -> Any:
        full_name = f"{self.__name__}.{name}"
        names = PLACES[self.__name__]
        if name in names:
            module, _, attribute = names[name].partition(":")
            value = attrgetter(attribute)(importlib.import_module(module))
            setattr(self, name, value)
            return value
        if full_name in PLACES or full_name in ALIASES:
            return importlib.import_module(full_name)
        if name.startswith("__") or _is_probe(name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        message = (
            f"estimator_core has no {name!r} in {self.__name__}, a module of the former "
            f"{_former(full_name)}.{instead_of(full_name)} It has {_contents(self.__name__)}."
        )
        if _is_asked_by_an_import(sys._getframe(1)):  # noqa: SLF001  # no public way in
            raise ImportError(message, name=self.__name__)
        raise AttributeError(message)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *PLACES[self.__name__], *_inner_modules(self.__name__)})


def _is_probe(name: str) -> bool:
    """Returns whether the name is probed by a tool such as IPython or pytest, not used by a program."""
    return name.startswith(("_ipython_", "_repr_", "pytest_"))


def _is_asked_by_an_import(frame: types.FrameType) -> bool:
    """Returns whether a frame is at a `from module import name`, which hides an AttributeError's text."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def _former(name: str) -> str:
    return "tf.contrib" if f"{name}.".startswith(f"{CONTRIB_ROOT}.") else "tensorflow_estimator"


def _inner_modules(name: str) -> list[str]:
    """Returns the names of the modules directly below a module."""
    prefix = f"{name}."
    below = [full[len(prefix) :] for full in {**PLACES, **ALIASES} if full.startswith(prefix)]
    return sorted({path for path in below if "." not in path})


def _contents(name: str) -> str:
    found = sorted(PLACES.get(name, ())) + _inner_modules(name)
    return ", ".join(found) if found else "nothing"


class OldModuleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of the table, and raises for others below the same paths.

    Each finder finds either those of tf.contrib or all others.
    """

    def __init__(self, contrib: bool = False):
        self._managed = (CONTRIB_ROOT,) if contrib else _MANAGED
        self._former = "tf.contrib" if contrib else "tensorflow_estimator"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module of the table; None for modules outside of its paths."""
        del path, target
        if _former(fullname) != self._former:
            return None
        is_managed = f"{fullname}.".startswith(tuple(f"{root}." for root in self._managed))
        if not is_managed and fullname not in PLACES:
            return None
        if fullname in PLACES or _alias(fullname) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        parent = fullname.rpartition(".")[0]
        raise ModuleNotFoundError(
            f"estimator_core has no module {fullname!r}, which would have been inside the former "
            f"{self._former}.{instead_of(fullname)} Below {parent} it has {_contents(parent)}.",
            name=fullname,
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns the module, which looks up its own names."""
        return _OldModule(spec.name, f"A module of the former {self._former}.")

    def exec_module(self, module: types.ModuleType) -> None:
        """Replaces the module by ours if it stands for a whole module."""
        alias = _alias(module.__name__)
        if alias is not None:
            sys.modules[module.__name__] = alias


def _alias(fullname: str) -> types.ModuleType | None:
    """Returns our module for a path: one of `ALIASES`, or a public module inside it; else None."""
    if fullname in ALIASES:
        return importlib.import_module(ALIASES[fullname])
    parent, _, name = fullname.rpartition(".")
    outer = _alias(parent) if parent else None
    inner = getattr(outer, name, None)
    is_public = outer is not None and name in getattr(outer, "__all__", ())
    return inner if is_public and isinstance(inner, types.ModuleType) else None
