"""Folder in the root for files that the steps of one run on Kubeflow leave for each other.

A step that may be cached must not get arguments that differ between runs. Therefore the files of a run are
in a folder that is named after the run's id on Kubeflow, which every step can look up.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pipelines import atomic_files
from pipelines.errors import DamagedFileError, RunFailedError
from pipelines.root import Root
from pipelines.root.lock import RootBusyError
from pipelines.root.signs_of_life import folder_of_run
from pipelines.runs.checks.component_checks import ENDING_CHECKS
from pipelines.runs.checks.schema_keeping import SchemaKeeping
from pipelines.steps.step_plan import StepPlan


@dataclass(frozen=True)
class PlannedStep:
    """A step of a run, in plain values."""

    plan: StepPlan  # Its plan, whose name is the step's
    executor: dict[str, Any] | None  # Executor, with its Beam options; None for an Importer
    made_by: str  # Id of the run that has made it, or is to make it
    reason: str  # Why it is reused, or runs
    check: dict[str, Any] | None = None
    code: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Value that KFP's cache compares.

        A step whose folder was deleted will be made by another run, so it is not found in the cache; nor is a
        step whose outputs passed another check.
        """
        check = ""
        if self.check is not None and self.check["kind"] in ENDING_CHECKS:
            text = json.dumps(self.check, sort_keys=True)
            check = f"/{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return f"{self.made_by}/{self.plan.name}{check}"


@dataclass(frozen=True)
class PlannedRun:
    """The steps of a run, each after those that it depends on."""

    steps: tuple[PlannedStep, ...]
    beam_options: tuple[str, ...] = ()  # Beam options of this run
    # Arguments of `load_pipeline` for a pipeline of the user's own; None for that from a CSV.
    definition: dict[str, Any] | None = None
    user_files: tuple[str, ...] = ()  # The user's Python files, which steps import by their names
    serving_version: str | None = None  # Version that served when the run began
    schema_keeping: SchemaKeeping | None = None  # Gives the root its schema

    def step(self, component: str) -> PlannedStep:
        for step in self.steps:
            if step.plan.component == component:
                return step
        raise LookupError(component)


T = TypeVar("T")

LOCK_WAIT_SECS = 600

RUN_ID_VARIABLE = "KFP_RUN_ID"
"""Environment variable with the id of the run, from the label of the pod."""

_RUN, _PLAN = "run.json", "plan.json"
_END = ".end.json"  # of a step: the id of a component may be `run` or `plan`
_OF_VERTEX = re.compile(r"^(?:gs://|/gcs/).+/(?P<run>[^/]+)/[^/]+_-?\d+/[^/]+$")


@dataclass(frozen=True)
class StepEnd:
    component: str
    elapsed_secs: float  # Wall time
    reason: str | None = None  # Reason of its failure; None after success
    is_bad_input: bool = False  # True if the data or the configuration are to blame
    reused: bool = False  # True if another run had made its outputs
    is_interrupted: bool = False  # True if a signal stopped it


@dataclass(frozen=True)
class _BegunRun:
    run_id: str  # of the record
    num_notes: int | None = None


@contextmanager
def locked_for_step(root: Root, component: str, run: str, wait_secs: float | None = None) -> Iterator[None]:
    """Holds the lock of a root for a step, which waits for the steps of other runs."""
    wait_secs = LOCK_WAIT_SECS if wait_secs is None else wait_secs
    with ExitStack() as stack:
        try:
            stack.enter_context(
                root.lock.writing.held(wait_secs, f"the step {component} of run {run} on Kubeflow")
            )
        except RootBusyError as error:
            raise RunFailedError(
                component, f"waited {wait_secs:g} s for the lock of the root. {error}"
            ) from error
        yield


class RunFolder:
    def __init__(self, root: Root, kubeflow_run: str):
        self.path = folder_of_run(root, kubeflow_run)
        self.kubeflow_run = kubeflow_run

    def write_run(self, run_id: str, num_notes: int | None = None) -> None:
        """Writes the id of the run's record.

        `num_notes`: number of notes that `Plan` left in the record; None while it is running.
        """
        self._write(_RUN, asdict(_BegunRun(run_id, num_notes)))

    def write_plan(self, plan: PlannedRun) -> None:
        self._write(_PLAN, asdict(plan))

    def read_plan(self) -> PlannedRun:
        plan = self._read(_PLAN, PlannedRun)
        if plan is None:
            raise self._not_here()
        return plan

    def read_run_id(self) -> str | None:
        """Returns the id of the run's record; None if `Plan` has not written it."""
        begun = self._read(_RUN, _BegunRun)
        return begun.run_id if begun else None

    def read_num_notes(self) -> int | None:
        """Returns the number of notes that `Plan` left in the record; None if it has not finished."""
        begun = self._read(_RUN, _BegunRun)
        return begun.num_notes if begun else None

    def require_run_id(self) -> str:
        """Returns the id of the run's record."""
        run_id = self.read_run_id()
        if not run_id:
            raise self._not_here()
        return run_id

    def _not_here(self) -> LookupError:
        return LookupError(
            f"There is no run {self.kubeflow_run} in {self.path.parent.parent}. If Plan has just started it, "
            "this step sees a different folder: kubeflow.root must be on a volume that every step mounts. "
            "Otherwise the run has ended and its files were removed: start a new run, which reuses unchanged "
            "steps."
        )

    def write_step(self, end: StepEnd) -> None:
        """Writes the end of a step; a retry replaces it."""
        self._write(f"{end.component}{_END}", asdict(end))

    def read_step(self, component: str) -> StepEnd | None:
        """Returns the end of a step; None if it did not run, as when it is cached."""
        return self._read(f"{component}{_END}", StepEnd)

    def forget_step(self, component: str) -> None:
        (self.path / f"{component}{_END}").unlink(missing_ok=True)

    def steps(self) -> list[StepEnd]:
        """Returns the ends of steps, in the order in which they ended."""
        files = sorted(self.path.glob(f"*{_END}"), key=lambda file: file.stat().st_mtime)
        ends = {file: self.read_step(file.name.removesuffix(_END)) for file in files}
        # Without copies that somebody has made.
        return [end for file, end in ends.items() if end and file.name == f"{end.component}{_END}"]

    def failures(self) -> list[StepEnd]:
        """Returns the ends of the steps that failed, the first failure first."""
        return [end for end in self.steps() if end.reason is not None]

    def remove(self) -> None:
        """Removes the folder: the run has been recorded."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, fields: Mapping[str, Any]) -> None:
        atomic_files.write_json(self.path / name, fields)

    def _read(self, name: str, form: type[T]) -> T | None:
        file = self.path / name
        try:
            return atomic_files.read_model(file, form)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            raise LookupError(f"{file} cannot be read ({error.reason}): start a new run") from error


def run_folders(root: Root) -> list[Path]:
    return sorted(path for path in root.kubeflow.glob("*") if path.is_dir())


def current_kubeflow_run(executor_input: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns the id of this process's run on Kubeflow.

    `executor_input`: KFP's `ExecutorInput` as JSON; on Vertex the path of its output file has the id.
    """
    if environment.get(RUN_ID_VARIABLE):
        return environment[RUN_ID_VARIABLE]
    file = json.loads(executor_input or "{}").get("outputs", {}).get("outputFile", "")
    if match := _OF_VERTEX.match(file):
        return match["run"]
    raise LookupError(
        f"The id of this step's run is unknown: the environment variable {RUN_ID_VARIABLE} is not "
        "set, which the compiled pipeline takes from the label pipeline/runid of the pod; and its "
        f"output file is not on Vertex. Received: {file!r}"
    )
