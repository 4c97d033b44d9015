"""Runs in a metadata store, and the versions that they have pushed."""

import ml_metadata
from ml_metadata.proto import metadata_store_pb2

from components.pusher.provenance import Provenance
from components.pusher.versions import push_version
from tests.pushed_versions import add_model

Event = metadata_store_pb2.Event
OUTPUTS = (
    ("ExampleStatistics", "StatisticsGen", "statistics", "statistics"),
    ("Model", "Trainer", "model", "model"),
    ("ModelRun", "Trainer", "model_run", "model"),  # in the same place as the model
)


class ServedRuns:
    """A store whose artifacts `strategy`, with the folder of versions, resolves by the key of a channel."""

    def __init__(self, folder, strategy, key):
        self.folder, self.serving, self._strategy, self._key = folder, folder / "serving", strategy, key
        config = metadata_store_pb2.ConnectionConfig()
        config.fake_database.SetInParent()
        self._store = ml_metadata.MetadataStore(config)
        self._context_type = self._store.put_context_type(metadata_store_pb2.ContextType(name="pipeline_run"))

    def run(self, name):
        """Makes statistics and a model, of which it returns the uri."""
        context = metadata_store_pb2.Context(type_id=self._context_type, name=name)
        for kind, maker, key, place in OUTPUTS:
            folder = self.folder / f"{place}-{name}"
            folder.mkdir(exist_ok=True)
            kind_id = self._store.put_artifact_type(metadata_store_pb2.ArtifactType(name=kind))
            artifact = metadata_store_pb2.Artifact(type_id=kind_id, uri=str(folder))
            event = Event(type=Event.OUTPUT)
            event.path.steps.add(key=key)
            maker_id = self._store.put_execution_type(metadata_store_pb2.ExecutionType(name=maker))
            execution = metadata_store_pb2.Execution(type_id=maker_id)
            self._store.put_execution(execution, [(artifact, event)], [context], True)
        add_model(self.folder / f"model-{name}" / "Format-Serving")
        return str(self.folder / f"model-{name}")

    def push(self, model, version):
        push_version(f"{model}/Format-Serving", str(self.serving), version, Provenance("run", model))

    def resolve(self, **config):
        """Returns the artifacts that the strategy finds, by their folders' names."""
        strategy = self._strategy(str(self.serving), **config)
        resolved = strategy.resolve_artifacts(self._store, {self._key: []})
        assert list(resolved) == [self._key]
        return [(artifact.type_name, artifact.uri.rpartition("/")[2]) for artifact in resolved[self._key]]
