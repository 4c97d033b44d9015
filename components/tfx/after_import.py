"""Calls a function after the import of a module, without importing it."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Collection

from components.tfx.packages import WrappingFinder

_functions: dict[str, list[Callable[[types.ModuleType], None]]] = {}


class _CallingLoader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)  # such as get_code, by which `python -m` runs a module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._loader.exec_module(module)
        for function in _functions[module.__name__]:
            function(module)


def after_import(names: Collection[str], function: Callable[[types.ModuleType], None]) -> None:
    """Calls `function` with each module: now if it is already imported, otherwise after its import."""
    WrappingFinder(_functions, _CallingLoader).install()  # one for all, as the first finder hides others
    for name in names:
        functions = _functions.setdefault(name, [])
        if function not in functions:
            functions.append(function)
        if name in sys.modules:
            function(sys.modules[name])
