"""Copies of pushed models in the root, which the next run compares its model with.

Kubeflow's artifacts may be gone or out of reach when the next run begins; the root exists as long as its
versions are served. So the Pusher's step keeps the model and the statistics of its data there.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import atomic_files
from pipelines.kubeflow.steps.artifacts import METADATA_KEY, input_metadata
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.kubeflow.steps.step_call import StepCall

_METADATA = ".metadata.json"
_TO_ACCEPT = 3


def keep(root: Root, run_id: str, name: str, source: Path, metadata: dict[str, str]) -> Path:
    """Copies an artifact into the root, and returns the folder of the copy.

    Args:
      root: Root of the runs; its lock is held.
      run_id: Id of the run.
      name: Name of the copy.
      source: Folder of the artifact.
      metadata: Metadata that Kubeflow stores for it.
    """
    target = root.kept_artifact(run_id, name)
    if not target.is_dir():
        atomic_files.write(target.with_name(name + _METADATA), json.dumps(metadata))
        atomic_files.copy_folder(source, target)
    return target


def keep_statistics(call: "StepCall", run_id: str) -> Path:
    """Copies the statistics of a run into the root, and returns the folder of the copy.

    Args:
      call: Arguments of a step that has the statistics as input.
      run_id: Id of the run.
    """
    metadata = input_metadata(call.executor_input, "statistics")
    source = Path(call.inputs["statistics"])
    return keep(call.root, run_id, "statistics", source, metadata)


def forget_unserved(root: Root) -> list[str]:
    """Removes the copies of runs without a version that can still be served; returns these runs.

    The newest runs are spared: their data may be accepted by `schema accept`.

    Args:
      root: Root of the runs; its lock is held.
    """
    needed = {origin.pipeline_run_id for _, origin in root.versions.origins()}
    records = root.records.read_all()
    needed |= {
        record.run_id for record in records if record.status == "running" or record.awaits_decision
    }
    needed |= {record.run_id for record in records[-_TO_ACCEPT:]}
    schema = root.schema.read()
    if schema is not None and schema.origin is not None:
        needed.add(schema.origin.run_id)  # new data are compared with that run's
    folders = (path for path in sorted(root.kept.glob("*")) if path.is_dir())
    gone = [folder for folder in folders if folder.name not in needed]
    for folder in gone:
        atomic_files.remove_below(root.kept, folder)
    return [folder.name for folder in gone]


def kept_metadata(folder: Path) -> dict[str, str]:
    """Returns the metadata that Kubeflow stored for an artifact, from its copy in the root."""
    file = folder.with_name(folder.name + _METADATA)
    if not file.is_file():
        return {METADATA_KEY: "{}"}
    metadata: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return metadata
