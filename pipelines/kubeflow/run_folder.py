"""What the steps of one run on Kubeflow leave for each other in the root.

Steps that are cached must not be handed anything that differs between runs. So what belongs to a run
lies in a folder that is named after the run's id on Kubeflow, which every step can find out.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.errors import RunFailedError
from pipelines.root.lock import RootBusyError, locked

LOCK_WAIT_SECS = 600

RUN_ID_VARIABLE = "KFP_RUN_ID"
"""Environment variable with the id of the run, from the label of the pod."""

_FOLDER, _RUN = "kubeflow", "run.json"
_OF_VERTEX = re.compile(r"^(?:gs://|/gcs/).+/(?P<run>[^/]+)/[^/]+_-?\d+/[^/]+$")


@dataclass(frozen=True)
class StepEnd:
    """How a step of this run ended.

    Attributes:
      component: Id of the component.
      elapsed_secs: Wall time.
      reason: Why it failed; None if it did not.
      is_bad_input: Whether the data or the configuration are to blame.
      findings: What its check had found when it failed, see `KeptFindings.as_json`.
      has_outputs: Whether the component itself went well, and its check has failed.
    """

    component: str
    elapsed_secs: float
    reason: str | None = None
    is_bad_input: bool = False
    findings: str = "[]"
    has_outputs: bool = False


@contextmanager
def locked_for_step(root: Path, component: str, run: str) -> Iterator[None]:
    """Holds the lock of a root for a step, which waits for the steps of other runs.

    Args:
      root: Of the pipeline.
      component: The step.
      run: Id of its run, for those who wait.

    Raises:
      RunFailedError: It waited too long.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(
                locked(root, LOCK_WAIT_SECS, f"the step {component} of run {run} on Kubeflow")
            )
        except RootBusyError as error:
            raise RunFailedError(
                component, f"waited {LOCK_WAIT_SECS} s for the lock of the root. {error}"
            ) from error
        yield


class RunFolder:
    """The folder of one run.

    Args:
      root: Of the pipeline.
      kubeflow_run: Id of the run on Kubeflow.
    """

    def __init__(self, root: Path, kubeflow_run: str):
        self.path = root / _FOLDER / re.sub(r"[^A-Za-z0-9._-]", "-", kubeflow_run)
        self.kubeflow_run = kubeflow_run

    def write_run(
        self, run_id: str, num_notes: int | None = None, beam_options: Sequence[str] = ()
    ) -> None:
        """Writes the id of the run's record.

        Args:
          run_id: The id.
          num_notes: How many notes `Plan` has left in the record; None as long as it is at work.
          beam_options: Of the steps. They are no part of their plans, which the cache sees.
        """
        fields = {"run_id": run_id, "num_notes": num_notes, "beam_options": list(beam_options)}
        self._write(_RUN, fields)

    def read_run_id(self) -> str | None:
        """Returns the id of the run's record; None if `Plan` did not get that far."""
        fields = self._read(_RUN)
        return fields["run_id"] if fields else None

    def read_num_notes(self) -> int | None:
        """Returns how many notes `Plan` has left in the record; None if it did not get to its end."""
        fields = self._read(_RUN)
        return fields.get("num_notes") if fields else None

    def read_beam_options(self) -> tuple[str, ...]:
        """Returns the options of Beam that this run's steps work with."""
        return tuple((self._read(_RUN) or {}).get("beam_options", ()))

    def require_run_id(self) -> str:
        """Returns the id of the run's record.

        Raises:
          LookupError: There is none here: the run was not begun in this root, or is over.
        """
        run_id = self.read_run_id()
        if not run_id:
            raise LookupError(
                f"There is no run {self.kubeflow_run} in {self.path.parent.parent}. Either the step Plan has "
                "written to another folder: kubeflow.root must be on a volume that every step mounts. Or "
                "the run is over, and what its steps left for each other was removed: start a new run; "
                "what has not changed is taken from the cache."
            )
        return run_id

    def write_step(self, end: StepEnd) -> None:
        """Writes how a step ended; a step that is tried again replaces it."""
        self._write(f"{end.component}.json", asdict(end))

    def read_step(self, component: str) -> StepEnd | None:
        """Returns how a step ended; None if it did not run, as one that is cached."""
        fields = self._read(f"{component}.json")
        return StepEnd(**fields) if fields else None

    def forget_step(self, component: str) -> None:
        """Removes how a step ended."""
        (self.path / f"{component}.json").unlink(missing_ok=True)

    def steps(self) -> list[StepEnd]:
        """Returns the steps that have ended, in that order."""
        files = (path for path in self.path.glob("*.json") if path.name != _RUN)
        ends = (self.read_step(path.stem) for path in sorted(files, key=_changed))
        return [end for end in ends if end is not None]

    def failures(self) -> list[StepEnd]:
        """Returns the steps that failed, the first one first."""
        return [end for end in self.steps() if end.reason is not None]

    def remove(self) -> None:
        """Removes the folder: the run has been recorded."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, fields: Mapping[str, Any]) -> None:
        atomic_files.write_json(self.path / name, fields)

    def _read(self, name: str) -> Any:
        file = self.path / name
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def run_folders(root: Path) -> list[Path]:
    """Returns the folders of all runs in a root."""
    return sorted(path for path in (root / _FOLDER).glob("*") if path.is_dir())


def kubeflow_run_of(output_uris: list[str], environment: Mapping[str, str] = os.environ) -> str:
    """Returns the id of the run that this process is a step of.

    Args:
      output_uris: Of the step's output artifacts; on Vertex they tell.
      environment: Of the process.

    Raises:
      LookupError: Nothing tells.
    """
    if environment.get(RUN_ID_VARIABLE):
        return environment[RUN_ID_VARIABLE]
    for uri in output_uris:
        if found := _OF_VERTEX.match(uri):
            return found["run"]
    raise LookupError(
        f"Nothing tells which run this step is of: the environment variable {RUN_ID_VARIABLE} is not "
        "set, which the compiled pipeline takes from the label pipeline/runid of the pod; and its "
        f"outputs are not on Vertex. Received: {output_uris!r}"
    )


def _changed(path: Path) -> float:
    return path.stat().st_mtime
