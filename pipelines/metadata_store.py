"""ML Metadata of a root, as a whole: executions that were killed, artifacts of a root that was moved."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ml_metadata
from ml_metadata.proto import metadata_store_pb2

FINGERPRINT = "input_fingerprint"
"""Execution property that makes changed code or data a changed execution."""

_Execution = metadata_store_pb2.Execution
_UNFINISHED = (_Execution.NEW, _Execution.RUNNING)
_FINISHED = (_Execution.COMPLETE, _Execution.CACHED)
_RUN_CONTEXT = "pipeline_run"


def metadata_file(root: Path) -> Path:
    """Returns the path of the sqlite file."""
    return root / "metadata" / "metadata.sqlite"


def open_store(root: Path) -> ml_metadata.MetadataStore:
    """Returns the store of a root, which exists."""
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(metadata_file(root))
    config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE
    return ml_metadata.MetadataStore(config)


def cancel_killed_executions(store: ml_metadata.MetadataStore, run_id: str) -> list[int]:
    """Marks executions that were killed as canceled, and returns their ids.

    Args:
      store: Nobody else works with it.
      run_id: The run that is about to begin, or to go on; its own executions are left alone.
    """
    own = _execution_ids(store, run_id)
    killed = [
        execution
        for execution in store.get_executions()
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
    """Returns the newest output of a component in one run; None if it did not finish, or was pruned.

    Args:
      store: Of the root.
      run_id: The run.
      type_name: Of the component, as ML Metadata knows it.
      key: Of the output.
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
    return Path(newest.uri) if newest.state == metadata_store_pb2.Artifact.LIVE else None


def fingerprints_of(store: ml_metadata.MetadataStore, run_id: str) -> dict[str, str]:
    """Returns the fingerprints of the components that finished in one run, by their types.

    Args:
      store: Of the root.
      run_id: The run.
    """
    names = {kind.id: kind.name for kind in store.get_execution_types()}
    return {
        names[execution.type_id]: execution.custom_properties[FINGERPRINT].string_value
        for execution in store.get_executions_by_id(sorted(_execution_ids(store, run_id)))
        if execution.last_known_state in _FINISHED
    }


def relocate_artifacts(store: ml_metadata.MetadataStore, artifacts: Path) -> int:
    """Points the artifacts of a root that was moved to where they are now.

    Artifacts lie in `<root>/artifacts/<component>/<output>/<execution id>`: what stands before is
    where the root was.

    Args:
      store: Nobody else works with it.
      artifacts: The folder that holds them now.

    Returns:
      How many artifacts were somewhere else.
    """
    moved = []
    for artifact in store.get_artifacts():
        parts = artifact.uri.rsplit("/", 4)
        if len(parts) != 5 or parts[1] != artifacts.name or parts[0] == str(artifacts.parent):
            continue
        former_root = parts[0]
        if not artifacts.joinpath(*parts[2:]).exists():
            continue  # of another root
        artifact.uri = str(artifacts.joinpath(*parts[2:]))
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
