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


def find_pushes(steps: Iterable[FinishedStep]) -> list[Push]:
    """Returns the pushes of the Pushers among some steps."""
    pushes = []
    for step in steps:
        for key, type_path in step.plan["outputs"].items():
            if type_path.endswith(".PushedModel"):
                property_of = step.artifact(key).get_string_custom_property
                destination, version = (
                    property_of("pushed_destination"),
                    property_of("pushed_version"),
                )
                number = version if version.isdecimal() else None
                if destination and "://" not in destination:
                    destination = str(Path(destination).absolute())
                pushes.append(
                    Push(step.component, destination, number, property_of("not_pushed_reason"))
                )
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

    A version that a rollback withdrew counts as pushed: pushing it again would undo the rollback. A version
    below a newer one does not: the newer version serves.
    """
    from tfx.dsl.io import fileio

    for push in find_pushes([step]):
        if not push.destination:
            continue
        folder, _, version = push.destination.rpartition("/")
        if folder == str(root.serving) and (root.withdrawn / version).exists():
            continue
        if not fileio.isdir(push.destination) or any(
            other.rstrip("/").isdecimal() and int(other.rstrip("/")) > int(version)
            for other in fileio.listdir(folder)
            if version.isdecimal()
        ):
            return False
    return True
