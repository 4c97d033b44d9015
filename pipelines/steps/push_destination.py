"""Pushes, whose effects lie outside of their step's folder: whether they are still there."""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.root import Root
from pipelines.steps.step_folders import FinishedStep


@dataclass(frozen=True)
class Push:
    """A push; `destination` is empty if nothing was pushed."""

    component: str
    destination: str
    version: str | None
    reason: str


def pushes_of(steps: Iterable[FinishedStep]) -> list[Push]:
    """Returns the pushes of the Pushers among some steps."""
    pushes = []
    for step in steps:
        for key, type_path in step.plan["outputs"].items():
            if type_path.endswith(".PushedModel"):
                text = step.artifact(key).get_string_custom_property
                destination, version = text("pushed_destination"), text("pushed_version")
                number = version if version.isdecimal() else None
                if destination and "://" not in destination:
                    destination = str(Path(destination).absolute())
                pushes.append(Push(step.component, destination, number, text("not_pushed_reason")))
    return pushes


def is_pusher(class_path: str) -> bool:
    """Returns True for an executor that pushes models."""
    from tfx.components.pusher.executor import Executor

    from components.pusher import executor as ours

    module, _, name = class_path.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    return issubclass(kind, Executor | ours.Executor)


def still_pushed(step: FinishedStep, root: Root) -> bool:
    """Returns True if what a step has pushed, or has decided not to push, still holds.

    A version that a rollback withdrew counts as pushed: pushing it again would undo the rollback.
    """
    for push in pushes_of([step]):
        if not push.destination:
            continue
        if not (Path(push.destination).is_dir() or _is_withdrawn(push, root)):
            return False
    return True


def was_rolled_back(step: FinishedStep, root: Root) -> bool:
    """Returns True if a rollback withdrew a version that a step pushed."""
    return any(_is_withdrawn(push, root) for push in pushes_of([step]))


def _is_withdrawn(push: Push, root: Root) -> bool:
    destination = Path(push.destination)
    return destination.parent == root.serving and (root.withdrawn / destination.name).exists()
