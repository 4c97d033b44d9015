"""Stores of ML Metadata, as earlier versions of this program and TFX left them in a root."""

import ml_metadata
from ml_metadata.proto import metadata_store_pb2

Event, Execution = metadata_store_pb2.Event, metadata_store_pb2.Execution


def open_store(root):
    """Returns the store of a root, which is made if it does not exist."""
    (root / "metadata").mkdir(parents=True, exist_ok=True)
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(root / "metadata" / "metadata.sqlite")
    config.sqlite.connection_mode = 3  # READWRITE_OPENCREATE
    return ml_metadata.MetadataStore(config)


def put_statistics(store, run_id, folder, is_cached=False):
    """Notes statistics as an output of a run; a cached one belongs to an earlier run as well."""
    types = metadata_store_pb2
    event = Event(type=Event.OUTPUT)
    event.path.steps.add(key="statistics")
    event.path.steps.add(index=0)
    state = Execution.CACHED if is_cached else Execution.COMPLETE
    kind = store.put_execution_type(types.ExecutionType(name="components.StatisticsGen"))
    context = store.put_context_type(types.ContextType(name="pipeline_run"))
    artifact = types.Artifact(
        type_id=store.put_artifact_type(types.ArtifactType(name="ExampleStatistics")), uri=str(folder)
    )
    existing = store.get_artifacts_by_uri(str(folder))
    if existing:
        artifact.id = existing[0].id
    store.put_execution(
        types.Execution(type_id=kind, last_known_state=state),
        [(artifact, event)],
        [types.Context(type_id=context, name=run_id)],
        True,
    )
