import shutil

import ml_metadata
import pytest
from ml_metadata.proto import metadata_store_pb2

import components
from pipelines.root import Root
from pipelines.root.statistics import statistics_folder

Event = metadata_store_pb2.Event


@pytest.fixture
def root(tmp_path):
    """A root whose run r1 has statistics in its artifacts."""
    root = Root(tmp_path / "root")
    folder = root.artifacts / "StatisticsGen" / "statistics" / "4"
    folder.mkdir(parents=True)
    root.metadata.folder.mkdir()
    store = ml_metadata.MetadataStore(root.metadata.connection_config())
    types = metadata_store_pb2
    name = components.StatisticsGen.get_class_type()
    event = Event(type=Event.OUTPUT)
    event.path.steps.add(key="statistics")
    artifact = types.Artifact(
        type_id=store.put_artifact_type(types.ArtifactType(name="ExampleStatistics")),
        uri=str(folder),
    )
    context = store.put_context_type(types.ContextType(name="pipeline_run"))
    store.put_execution(
        types.Execution(
            type_id=store.put_execution_type(types.ExecutionType(name=name)),
            last_known_state=types.Execution.COMPLETE,
        ),
        [(artifact, event)],
        [types.Context(type_id=context, name="r1")],
    )
    return root


def test_it_is_the_output_of_the_run(root):
    assert statistics_folder(root, "r1") == root.artifacts / "StatisticsGen" / "statistics" / "4"


def test_a_root_that_was_moved_is_not_left(root, tmp_path):
    shutil.move(root.path, tmp_path / "moved")
    moved = Root(tmp_path / "moved")
    assert statistics_folder(moved, "r1") == moved.artifacts / "StatisticsGen" / "statistics" / "4"


def test_runs_on_kubeflow_keep_theirs_elsewhere(root, tmp_path):
    assert statistics_folder(root, "r2") == root.kept / "r2" / "statistics"
    bare = Root(tmp_path / "bare")
    assert statistics_folder(bare, "r1") == bare.kept / "r1" / "statistics"
