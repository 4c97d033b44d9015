"""The `__all__` of a package that lists its public names only once, as `from x import y as y`."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


def names(package: Mapping[str, Any], modules: Sequence[str] = ()) -> list[str]:
    """Returns the public names in a package's `globals()`, with only the listed ones of its modules.

    Python adds every imported submodule to its package, so `from package import *` needs an `__all__`.
    """
    return sorted(
        name
        for name, value in package.items()
        if name in modules or not (name.startswith("_") or isinstance(value, ModuleType))
    )
