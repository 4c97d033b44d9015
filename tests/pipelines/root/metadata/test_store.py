import pytest
from ml_metadata.proto import metadata_store_pb2

from pipelines.root import Root
from pipelines.root.metadata.store import (
    FINGERPRINT,
    cancel_killed_executions,
    fingerprints_of,
    output_of,
    relocate_artifacts,
    run_contexts,
)

Execution = metadata_store_pb2.Execution


@pytest.fixture
def store(tmp_path):
    """An empty store of `tmp_path`, with the types that the tests need."""
    import ml_metadata

    (tmp_path / "metadata").mkdir()
    file = tmp_path / "metadata" / "metadata.sqlite"
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(file)
    config.sqlite.connection_mode = 3  # READWRITE_OPENCREATE
    ml_metadata.MetadataStore(config)
    return Root(tmp_path).metadata.open()


def put_execution(store, state, run_id, fingerprint=""):
    execution_type = store.put_execution_type(metadata_store_pb2.ExecutionType(name="Trainer"))
    context_type = store.put_context_type(metadata_store_pb2.ContextType(name="pipeline_run"))
    execution = Execution(type_id=execution_type, last_known_state=state)
    execution.custom_properties[FINGERPRINT].string_value = fingerprint
    known = store.get_context_by_type_and_name("pipeline_run", run_id)
    context = known or metadata_store_pb2.Context(type_id=context_type, name=run_id)
    return store.put_execution(execution, [], [context])[0]


def test_executions_of_killed_runs_are_canceled_and_no_others(store):
    states = (Execution.RUNNING, Execution.NEW, Execution.COMPLETE, Execution.FAILED)
    old = {state: put_execution(store, state, "run-1") for state in states}
    own = put_execution(store, Execution.RUNNING, "run-2")
    canceled = cancel_killed_executions(store, "run-2")
    assert sorted(canceled) == sorted([old[Execution.RUNNING], old[Execution.NEW]])
    found = {execution.id: execution.last_known_state for execution in store.get_executions()}
    assert [found[number] for number in old.values()] == [
        Execution.CANCELED, Execution.CANCELED, Execution.COMPLETE, Execution.FAILED,
    ]  # fmt: skip
    assert found[own] == Execution.RUNNING
    assert cancel_killed_executions(store, "run-2") == []


def test_the_output_of_a_run_is_that_of_its_finished_execution(store):
    kind = store.put_artifact_type(metadata_store_pb2.ArtifactType(name="ModelRun"))
    places = {}
    for run_id, state in (
        ("run-1", Execution.COMPLETE),
        ("run-2", Execution.COMPLETE),
        ("run-2", Execution.CACHED),
        ("run-3", Execution.FAILED),
    ):
        execution = put_execution(store, state, run_id)
        places[execution] = f"/root/artifacts/Trainer/model_run/{execution}"
        for key, uri in (("model_run", places[execution]), ("model", "/elsewhere")):
            event = metadata_store_pb2.Event(type=metadata_store_pb2.Event.OUTPUT)
            event.execution_id = execution
            event.artifact_id = store.put_artifacts(
                [metadata_store_pb2.Artifact(type_id=kind, uri=uri)]
            )[0]
            event.path.steps.add().key = key
            store.put_events([event])
    first, _, newest, _ = places.values()
    found = [output_of(store, run_id, "Trainer", "model_run") for run_id in ("run-1", "run-2")]
    assert [str(path) for path in found] == [first, newest]
    assert output_of(store, "run-3", "Trainer", "model_run") is None
    assert output_of(store, "run-4", "Trainer", "model_run") is None
    assert output_of(store, "run-1", "Pusher", "model_run") is None


def test_the_fingerprints_of_a_run_are_those_of_its_finished_executions(store):
    put_execution(store, Execution.COMPLETE, "run-1", "one")
    put_execution(store, Execution.FAILED, "run-2", "two")
    put_execution(store, Execution.CACHED, "run-3", "three")
    found = [fingerprints_of(store, run_id) for run_id in ("run-1", "run-2", "run-3", "run-4")]
    assert found == [{"Trainer": "one"}, {}, {"Trainer": "three"}, {}]


def test_artifacts_of_a_root_that_was_moved_are_found_where_they_are(store, tmp_path):
    kind = store.put_artifact_type(metadata_store_pb2.ArtifactType(name="Model"))
    for number in (1, 2):
        (tmp_path / "artifacts" / "Trainer" / "model" / str(number)).mkdir(parents=True)
    here = f"{tmp_path}/artifacts/Trainer/model"
    uris = [
        "/old/root/artifacts/Trainer/model/1",
        f"{here}/2",
        "/old/root/artifacts/Trainer/model/3",  # not there: it was another root's
        "/a/model/of/the/users",
    ]
    for uri in uris:
        artifact = metadata_store_pb2.Artifact(type_id=kind, uri=uri)
        artifact.custom_properties["place"].string_value = "/old/root/serving/7"
        artifact.custom_properties["other"].string_value = "/old/rooted"
        store.put_artifacts([artifact])
    assert relocate_artifacts(store, tmp_path / "artifacts") == 1
    artifacts = store.get_artifacts()
    assert [artifact.uri for artifact in artifacts] == [f"{here}/1", *uris[1:]]
    places = [artifact.custom_properties["place"].string_value for artifact in artifacts]
    assert places == [f"{tmp_path}/serving/7", *["/old/root/serving/7"] * 3]
    assert artifacts[0].custom_properties["other"].string_value == "/old/rooted"
    assert relocate_artifacts(store, tmp_path / "artifacts") == 0


def test_no_artifact_is_moved_out_of_the_root(store, tmp_path):
    kind = store.put_artifact_type(metadata_store_pb2.ArtifactType(name="Model"))
    artifacts = tmp_path / "root" / "artifacts"
    artifacts.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    uri = f"/old/{artifacts.name}/../../outside"
    store.put_artifacts([metadata_store_pb2.Artifact(type_id=kind, uri=uri)])
    assert relocate_artifacts(store, artifacts) == 0
    assert store.get_artifacts()[0].uri == uri


def test_the_runs_of_other_roots_in_one_store_are_left_alone(store):
    own = put_execution(store, Execution.RUNNING, "20260101-000000-rab12")
    second = put_execution(store, Execution.RUNNING, "20260101-000000-rab12-2")
    other = put_execution(store, Execution.RUNNING, "20260101-000000-rab1")
    names = [context.name for context in run_contexts(store, "rab12")]
    assert names == ["20260101-000000-rab12", "20260101-000000-rab12-2"]
    assert len(run_contexts(store)) == 3
    assert sorted(cancel_killed_executions(store, "20260102-000000-rab12", "rab12")) == [
        own,
        second,
    ]
    found = {execution.id: execution.last_known_state for execution in store.get_executions()}
    assert found[other] == Execution.RUNNING


def test_an_output_that_was_pruned_is_none(store):
    kind = store.put_artifact_type(metadata_store_pb2.ArtifactType(name="ModelRun"))
    number = put_execution(store, Execution.COMPLETE, "run-1")
    artifact = metadata_store_pb2.Artifact(type_id=kind, uri="/a/model_run/1", state=2)
    (artifact.id,) = store.put_artifacts([artifact])
    event = metadata_store_pb2.Event(execution_id=number, artifact_id=artifact.id, type=4)
    event.path.steps.add().key = "model_run"
    event.path.steps.add().index = 0
    store.put_events([event])
    assert str(output_of(store, "run-1", "Trainer", "model_run")) == "/a/model_run/1"
    artifact.state = artifact.DELETED
    store.put_artifacts([artifact])
    assert output_of(store, "run-1", "Trainer", "model_run") is None
