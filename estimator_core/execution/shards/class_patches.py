"""Methods of other people's classes, replaced for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

_INHERITED = object()


class Replacement(NamedTuple):
    """A method to replace.

    Attributes:
        owner: The class.
        name: The method's name.
        wrap: Function of the method at hand that returns the one in its place.
    """

    owner: type
    name: str
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]]


class _Installed(NamedTuple):
    owner: type
    name: str
    before: Any  # what the class's own dict had; _INHERITED when it had nothing
    now: Any


class ClassPatches:
    """Methods that are replaced as long as anyone, in whichever thread, needs them to be.

    The first who needs them has them replaced, the last one restores them; the dict of each class is
    then what it was. A method that someone else replaces meanwhile stays as he left it: he decides
    what becomes of the one below, so a replacement must be harmless when nobody needs it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: set[object] = set()
        self._installed: list[_Installed] = []

    @contextlib.contextmanager
    def needed(self, replacements: Iterable[Replacement]) -> Iterator[None]:
        """Has methods replaced within the context, however it ends."""
        user = object()
        try:  # an interrupt may come at any point, in the midst of the replacing too
            with self._lock:
                self._users.add(user)
                self._install(replacements)
            yield
        finally:
            with self._lock:
                self._users.discard(user)
                if not self._users:
                    self._restore()

    def also(self, replacements: Iterable[Replacement]) -> None:
        """Replaces further methods until nobody needs any; those that are replaced stay so."""
        with self._lock:
            if self._users:
                self._install(replacements)

    def _install(self, replacements: Iterable[Replacement]) -> None:
        for owner, name, wrap in replacements:
            if any(patch.owner is owner and patch.name == name for patch in self._installed):
                continue
            now = wrap(getattr(owner, name))
            self._installed.append(_Installed(owner, name, vars(owner).get(name, _INHERITED), now))
            setattr(owner, name, now)

    def _restore(self) -> None:
        while self._installed:
            owner, name, before, now = self._installed[-1]
            if vars(owner).get(name) is now:
                if before is _INHERITED:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
            self._installed.pop()
