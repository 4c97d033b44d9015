"""The folders of steps, `ROOT/artifacts/<component>/<name>/<key>/`.

A step has finished if its folder has a `step.json`, which is written last. Outputs are made in their place:
some components write absolute paths into them.
"""

import importlib
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from pipelines import atomic_files
from pipelines.errors import DamagedFileError
from pipelines.root import Root
from pipelines.root.lock import FileLock
from pipelines.steps.step_plan import (
    FolderRef,
    OutputRef,
    StepPlan,
    executor_class_path,
    with_root,
    without_root,
)

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

_LOGGER = logging.getLogger(__name__)

_FILE = "step.json"
_LOCK = ".lock"
_NAME = re.compile(r"[0-9a-f]{64}")
_PROPERTIES = ("properties", "customProperties")
_MOST_OUTPUTS = 1000  # of a step; artifact ids are `number * _MOST_OUTPUTS + position`


def _whole(plan: dict[str, Any]) -> dict[str, Any]:
    atomic_files.checked(plan, StepPlan)
    return plan


@dataclass(frozen=True)
class _StepFile:
    plan: Annotated[dict[str, Any], AfterValidator(_whole)]
    outputs: dict[str, dict[str, Any]]  # by key: properties, and the path, or a URI outside of the root
    number: int  # in the order in which the steps of this root ended: a clock may go back
    run_id: str  # run that made it
    elapsed_secs: float


@dataclass(frozen=True)
class FinishedStep(_StepFile):
    """The content of a `step.json`, and its folder."""

    folder: Path

    @property
    def component(self) -> str:
        return str(self.plan["component"])

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def key(self) -> tuple[str, str]:
        return self.component, self.name

    @property
    def class_path(self) -> str:
        """Import path of the executor's class; empty for an import."""
        return executor_class_path(self.plan["executor"])

    @property
    def is_whole(self) -> bool:
        """False if an output was removed, such as the checkpoints of a training."""
        paths = (fields.get("path") for fields in self.outputs.values())
        return all((self.folder / path).exists() for path in paths if path is not None)

    @property
    def has_blessed(self) -> bool | None:
        """True if it has blessed a model, False if it has refused one; None if it judges no models."""
        for key, kind in self.plan["outputs"].items():
            if kind.endswith(".ModelBlessing"):
                fields: dict[str, Any] = self.outputs[key]["customProperties"]
                return fields.get("blessed") == {"intValue": "1"}
        return None

    def artifact(self, key: str) -> "Artifact":
        """Returns an output artifact. Of two artifacts of a root, the newer one has the higher id."""
        stored = with_root(self.outputs[key], self.folder.parents[2])
        number = self.number * _MOST_OUTPUTS + sorted(self.outputs).index(key)
        artifact = new_artifact(self.plan["outputs"][key], stored, number)
        artifact.uri = stored.get("uri") or str(self.folder / stored["path"])
        artifact.producer_component = self.component
        artifact.name = key
        return artifact


class StepFolders:
    def __init__(self, folder: Path):
        self.root = folder.parent
        self.folder = folder
        self._numbers: dict[tuple[Path, int], int] = {}  # by `step.json` and the time of its change

    def finished(self, component: str, name: str) -> FinishedStep | None:
        file = self.folder / component / name / _FILE
        try:
            return FinishedStep(**vars(atomic_files.read_model(file, _StepFile)), folder=file.parent)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            _LOGGER.warning("%s cannot be read (%s): the step runs again.", file, error.reason)
            return None

    def all_finished(self, component: str = "*") -> list[FinishedStep]:
        """Returns the finished steps, oldest first: those of a component, or all."""
        steps = (
            self.finished(file.parents[1].name, file.parent.name)
            for file in self.folder.glob(f"{component}/*/{_FILE}")
            if _NAME.fullmatch(file.parent.name)  # a folder that is being removed has another name
        )
        return sorted(filter(None, steps), key=lambda step: (step.number, step.name))

    def ref(self, folder: Path, type_path: str) -> OutputRef | FolderRef:
        """Returns the reference to a folder in the root: to the output of a step, if it is one."""
        parts = folder.relative_to(self.root).parts
        if parts[:1] == (self.folder.name,) and len(parts) == 4 and self.finished(*parts[1:3]):
            return OutputRef(*parts[1:])
        return FolderRef("/".join(parts), type_path)

    def exists(self, output: OutputRef | FolderRef) -> bool:
        """Returns True if an artifact is there, False if its step has not finished."""
        if isinstance(output, FolderRef):
            return (self.root / output.folder).exists()
        return self.finished(output.component, output.step) is not None

    def artifact(self, output: OutputRef | FolderRef) -> "Artifact":
        """Returns an output of a finished step, or another artifact in the root."""
        if isinstance(output, FolderRef):
            return _folder_artifact(self.root / output.folder, output.type)
        step = self.finished(output.component, output.step)
        if step is None:
            raise FileNotFoundError(
                f"The step {output.component} {output.step[:12]} is not in {self.folder}: it was removed, "
                "or its step.json was damaged, while a run needed it. Run again."
            )
        return step.artifact(output.key)

    def place(self, plan: StepPlan) -> Path:
        """Returns the folder of a step. It may hold what a killed run has left there."""
        return self.folder / plan.component / plan.name

    @contextmanager
    def locked(self, plan: StepPlan) -> Iterator[None]:
        """Waits until no other process makes a step, and keeps others from it."""
        file = self.place(plan) / _LOCK
        with FileLock(file).held(math.inf, "a step is being made"):
            yield
            # Now the step has finished; those that wait find it so, with the lock of the removed file.
            file.unlink(missing_ok=True)

    def forget(self, plan: StepPlan) -> None:
        """Makes a step unfinished before its outputs are made: its `step.json` may have been unreadable."""
        (self.place(plan) / _FILE).unlink(missing_ok=True)

    def finish(
        self, plan: StepPlan, outputs: Mapping[str, Sequence["Artifact"]], run_id: str, elapsed_secs: float
    ) -> FinishedStep:
        """Marks a step as finished, now that its outputs are complete, and returns it."""
        with FileLock(self.folder / _LOCK).held(math.inf, "a step is being numbered"):
            folder = self.place(plan)
            content = _StepFile(
                plan=asdict(plan),
                outputs={
                    key: without_root(_fields(artifact, folder), self.root)
                    for key, (artifact,) in outputs.items()
                },
                number=self._newest_number() + 1,
                run_id=run_id,
                elapsed_secs=round(elapsed_secs, 3),
            )
            for partial in atomic_files.left_over(folder):
                partial.unlink()
            atomic_files.write(folder / _FILE, json.dumps(vars(content), indent=1, allow_nan=False))
            return FinishedStep(**vars(content), folder=folder)

    def _newest_number(self) -> int:
        """Returns the highest number of a step; other processes finish steps, too."""
        for file in self.folder.glob(f"*/*/{_FILE}"):
            with suppress(FileNotFoundError):  # its step has just been removed
                changed = (file, file.stat().st_mtime_ns)
                if changed not in self._numbers:
                    step = self.finished(file.parents[1].name, file.parent.name)
                    self._numbers[changed] = step.number if step else 0
        return max(self._numbers.values(), default=0)

    def unfinished(self) -> list[Path]:
        """Returns the folders of steps that did not finish, and that no process makes, sorted."""
        folders = (path for path in self.folder.glob("*/*") if _NAME.fullmatch(path.name))
        return sorted(
            folder
            for folder in folders
            if not (folder / _FILE).exists() and not FileLock(folder / _LOCK).is_held()
        )


def new_artifact(type_path: str, fields: Mapping[str, Any] | None = None, number: int = 0) -> "Artifact":
    from google.protobuf import json_format

    module, _, name = type_path.rpartition(".")
    artifact: Artifact = getattr(importlib.import_module(module), name)()
    proto = artifact.mlmd_artifact
    json_format.ParseDict({part: (fields or {}).get(part, {}) for part in _PROPERTIES}, proto)
    if number:
        proto.id = number
    artifact.set_mlmd_artifact(proto)
    return artifact


def artifact_properties(artifact: "Artifact") -> dict[str, Any]:
    """Returns the `properties` and `customProperties` of an artifact, as `new_artifact` takes them."""
    from google.protobuf import json_format

    proto = json_format.MessageToDict(artifact.mlmd_artifact)
    return {part: proto.get(part, {}) for part in _PROPERTIES}


def _folder_artifact(folder: Path, type_path: str) -> "Artifact":
    artifact = new_artifact(type_path)
    artifact.uri = str(folder)
    splits = sorted(path.name.removeprefix("Split-") for path in folder.glob("Split-*"))
    if splits:
        artifact.split_names = json.dumps(splits)
    return artifact


def _fields(artifact: "Artifact", folder: Path) -> dict[str, Any]:
    fields = artifact_properties(artifact)
    path = Path(artifact.uri)
    if path.is_relative_to(folder):
        return {**fields, "path": str(path.relative_to(folder))}
    return {**fields, "uri": artifact.uri}


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
                destination, version = (property_of("pushed_destination"), property_of("pushed_version"))
                number = version if version.isdecimal() else None
                if destination and "://" not in destination:
                    destination = str(Path(destination).absolute())
                pushes.append(Push(step.component, destination, number, property_of("not_pushed_reason")))
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
