"""Queries and repairs of a root's ML Metadata: killed executions, artifacts of a root that was moved."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ml_metadata
from ml_metadata.proto import metadata_store_pb2

from pipelines.atomic_files import is_below

FINGERPRINT = "content_fingerprint"
"""Execution property that makes changed code or data a different execution.

`input_fingerprint` is TFX's own: the driver of CsvExampleGen stores a hash of the files there.
"""

PRUNED = (
    metadata_store_pb2.Artifact.MARKED_FOR_DELETION,
    metadata_store_pb2.Artifact.DELETED,
)
"""States of artifacts whose files are gone, or about to go."""

_Execution = metadata_store_pb2.Execution
_UNFINISHED = (_Execution.NEW, _Execution.RUNNING)
_FINISHED = (_Execution.COMPLETE, _Execution.CACHED)
_RUN_CONTEXT = "pipeline_run"


def run_contexts(store: ml_metadata.MetadataStore, root_id: str = "") -> list[Any]:
    """Returns the contexts of the runs of a root.

    Args:
      store: Store of the root.
      root_id: Id that distinguishes the root's runs in a shared store; empty in its own.
    """
    ending = f"-{root_id}"
    return [
        context
        for context in store.get_contexts_by_type(_RUN_CONTEXT)
        if not root_id or ending in f"{context.name}-"
    ]


def cancel_killed_executions(
    store: ml_metadata.MetadataStore, run_id: str, root_id: str = ""
) -> list[int]:
    """Marks executions that were killed as canceled, and returns their ids.

    Args:
      store: Store of the root. Nothing else works with the root's part of it.
      run_id: Id of the run that is about to start or resume; its own executions are left alone.
      root_id: Id of the root, see `run_contexts`.
    """
    own = _execution_ids(store, run_id)
    known = (
        [
            one
            for context in run_contexts(store, root_id)
            for one in store.get_executions_by_context(context.id)
        ]
        if root_id
        else store.get_executions()
    )
    killed = [
        execution
        for execution in known
        if execution.last_known_state in _UNFINISHED and execution.id not in own
    ]
    for execution in killed:
        execution.last_known_state = _Execution.CANCELED
    if killed:
        store.put_executions(killed)
    return [execution.id for execution in killed]


def output_of(
    store: ml_metadata.MetadataStore, run_id: str, type_name: str, key: str
) -> Path | None:
    """Returns the newest output of a component in one run; None if it did not finish or was pruned.

    Args:
      store: Store of the root.
      run_id: Id of the run.
      type_name: Type of the component in ML Metadata.
      key: Key of the output.
    """
    of_run = _execution_ids(store, run_id)
    finished = [
        execution.id
        for execution in store.get_executions_by_type(type_name)
        if execution.id in of_run and execution.last_known_state in _FINISHED
    ]
    outputs = [
        event.artifact_id
        for event in store.get_events_by_execution_ids(finished)
        if event.type == metadata_store_pb2.Event.OUTPUT and event.path.steps[0].key == key
    ]
    if not outputs:
        return None
    newest = store.get_artifacts_by_id([max(outputs)])[0]
    return None if newest.state in PRUNED else Path(newest.uri)


def fingerprints_of(store: ml_metadata.MetadataStore, run_id: str) -> dict[str, str]:
    """Returns the fingerprints of the components that finished in one run, by component type.

    Args:
      store: Store of the root.
      run_id: Id of the run.
    """
    names = {kind.id: kind.name for kind in store.get_execution_types()}
    return {
        names[execution.type_id]: execution.custom_properties[FINGERPRINT].string_value
        for execution in store.get_executions_by_id(sorted(_execution_ids(store, run_id)))
        if execution.last_known_state in _FINISHED
    }


def relocate_artifacts(store: ml_metadata.MetadataStore, artifacts: Path) -> int:
    """Points the artifacts of a moved root to their present place.

    Artifacts lie in `<root>/artifacts/<component>/<output>/<execution id>`: the part before `artifacts`
    is the former place of the root.

    Args:
      store: Store of the root. Nothing else works with it.
      artifacts: Folder that holds the artifacts now.

    Returns:
      Number of artifacts whose paths were changed.
    """
    moved = []
    for artifact in store.get_artifacts():
        parts = artifact.uri.rsplit("/", 4)
        if len(parts) != 5 or parts[1] != artifacts.name or parts[0] == str(artifacts.parent):
            continue
        former_root = parts[0]
        present = artifacts.joinpath(*parts[2:])
        if not present.exists() or not is_below(present, artifacts):
            continue  # belongs to another root
        artifact.uri = str(present)
        for properties in (artifact.properties, artifact.custom_properties):
            _replace_root(properties, former_root, artifacts.parent)
        moved.append(artifact)
    if moved:
        store.put_artifacts(moved)
    return len(moved)


def _replace_root(properties: Any, former_root: str, root: Path) -> None:
    for value in properties.values():
        if value.string_value.startswith(f"{former_root}/"):
            value.string_value = f"{root}{value.string_value.removeprefix(former_root)}"


def _execution_ids(store: ml_metadata.MetadataStore, run_id: str) -> set[int]:
    context = store.get_context_by_type_and_name(_RUN_CONTEXT, run_id)
    found: Iterable[Any] = store.get_executions_by_context(context.id) if context else ()
    return {execution.id for execution in found}
