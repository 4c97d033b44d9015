import ml_metadata
import pytest
from ml_metadata.proto import metadata_store_pb2

from components.example_validator.served_statistics import ServedStatisticsStrategy
from components.pusher.provenance import Provenance
from components.pusher.versions import push_version
from tests.pushed_versions import add_model

Event = metadata_store_pb2.Event


class Root:
    """A metadata store with runs, and the versions that they have pushed."""

    def __init__(self, folder):
        self.folder = folder
        config = metadata_store_pb2.ConnectionConfig()
        config.fake_database.SetInParent()
        self.store = ml_metadata.MetadataStore(config)
        self.types = {
            name: self.store.put_artifact_type(metadata_store_pb2.ArtifactType(name=name))
            for name in ("Model", "ExampleStatistics")
        }
        self.execution_types = {
            name: self.store.put_execution_type(metadata_store_pb2.ExecutionType(name=name))
            for name in ("Trainer", "StatisticsGen")
        }
        self.run_type = self.store.put_context_type(metadata_store_pb2.ContextType(name="pipeline_run"))

    def run(self, name):
        """A run that makes statistics and a model, of which it returns the uri."""
        context = metadata_store_pb2.Context(type_id=self.run_type, name=name)
        uris = {}
        outputs = (("ExampleStatistics", "StatisticsGen", "statistics"), ("Model", "Trainer", "model"))
        for kind, maker, key in outputs:
            folder = self.folder / f"{kind}-{name}"
            folder.mkdir(parents=True)
            if kind == "Model":
                add_model(folder / "Format-Serving")
            uris[kind] = str(folder)
            artifact = metadata_store_pb2.Artifact(type_id=self.types[kind], uri=str(folder))
            event = Event(type=Event.OUTPUT)
            event.path.steps.add(key=key)
            execution = metadata_store_pb2.Execution(type_id=self.execution_types[maker])
            self.store.put_execution(execution, [(artifact, event)], [context], True)
        return uris["Model"]

    def push(self, model, version):
        push_version(f"{model}/Format-Serving", str(self.folder / "serving"), version, Provenance("-", model))

    def resolve(self, **config):
        strategy = ServedStatisticsStrategy(str(self.folder / "serving"), **config)
        (found,) = strategy.resolve_artifacts(self.store, {"statistics": []}).values()
        assert {artifact.type_name for artifact in found} <= {"ExampleStatistics"}
        return [artifact.uri.rpartition("-")[2] for artifact in found]


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path)


def test_the_statistics_are_of_the_run_that_made_what_is_served(root):
    assert root.resolve() == []
    first, second = root.run("first"), root.run("second")
    root.run("third")
    assert root.resolve() == []
    root.push(first, 5)
    assert root.resolve() == ["first"]
    root.push(second, 6)
    assert root.resolve() == ["second"]


def test_an_accepted_run_goes_before_and_statistics_that_were_removed_are_none(root):
    root.push(root.run("first"), 5)
    root.run("second")
    assert root.resolve(accepted_run="second") == ["second"]
    assert root.resolve(accepted_run="unknown") == []
    assert root.resolve(accepted_run="") == ["first"]
    (root.folder / "ExampleStatistics-first").rmdir()
    assert root.resolve() == []
