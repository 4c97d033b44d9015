"""Temporary replacement of methods of other packages' classes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

_INHERITED = object()


class Replacement(NamedTuple):
    """A method to replace."""

    owner: type
    name: str  # The method's name
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]]


class _Installed(NamedTuple):
    owner: type
    name: str
    original: Any  # entry of the class's own dict; _INHERITED if it had none
    now: Any


class ClassPatches:
    """Methods that are replaced as long as there are users, in any thread.

    The first user replaces them and the last one restores them; then the dict of each class is the same as
    before. A method that other code has replaced since is not restored, and that code may keep calling our
    replacement, so a replacement must be harmless without users.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: set[object] = set()
        self._installed: list[_Installed] = []

    @contextlib.contextmanager
    def needed(self, replacements: Iterable[Replacement]) -> Iterator[None]:
        """Replaces methods within the context; they are restored even after an error."""
        user = object()
        try:  # an interrupt may come at any point, even while methods are being replaced
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
        """Replaces further methods until there are no users, if there are any now."""
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
            owner, name, original, now = self._installed[-1]
            if vars(owner).get(name) is now:
                if original is _INHERITED:
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)
            self._installed.pop()
