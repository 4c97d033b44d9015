import sys

import numpy as np
import pytest
import tensorflow as tf

from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.runs.mlflow_registry import register_versions
from pipelines.runs.plan.inputs import RunRequest, read_inputs
from tests.pipelines.run_records import make_record
from tests.pushed_versions import serve_version


class Doubler(tf.Module):
    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.float32, "x"), tf.TensorSpec([None], tf.string, "name")]
    )
    def serve(self, x, name):
        return {"y": 2 * x, "shout": tf.strings.upper(name)}


def config_of(uri):
    settings = ["columns.a/b=number", "columns.a_b=number", *([f"pusher.mlflow={uri}"] if uri else [])]
    return load_config(data="d.csv", label="y", settings=settings).model_dump(mode="json")


class Pushes:
    """A root with runs that have pushed."""

    def __init__(self, path, uri):
        self.root, self.uri = Root(path), uri

    def push(self, version, uri=None, **fields):
        run_id = f"20260102-0304{version % 100:02}"
        report = self.root.report(run_id)
        record = make_record(
            run_id, version=str(version), config=config_of(uri), number=version, report=str(report), **fields
        )
        self.root.records.write(record)
        report.write_text("<h1>report</h1>")
        doubler = Doubler()
        folder = str(self.root.serving / str(version))
        tf.saved_model.save(doubler, folder, {"serving_rows": doubler.serve})
        serve_version(self.root.serving, version, run_id)
        return record

    def register(self, **changes):
        record = self.root.records.newest()
        return register_versions(self.root, record.changed(config=config_of(self.uri), **changes))


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the artifacts of a store without a server are in the working directory
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    return pytest.importorskip("mlflow", reason="needs MLflow, of the extra mlflow")


@pytest.fixture
def pushes(tmp_path):
    return Pushes(tmp_path / "root", f"sqlite:///{tmp_path}/mlflow.db")


@pytest.mark.more
def test_a_version_is_registered_once_with_all_that_is_known_about_it(mlflow, pushes, monkeypatch):
    pushes.push(1000)  # before there was a registry
    pushes.push(1001, pushes.uri)
    metrics = {"auc": 0.75, "precision@3": 0.5, "none": None, "nan": float("nan")}
    record = pushes.push(1002, metrics=metrics, test_metrics={"auc": 0.7, "example_count": 9.0})
    assert [pushes.register(), pushes.register(status="unchanged")] == [None, None]
    client = mlflow.MlflowClient(pushes.uri, pushes.uri)
    found = sorted(client.search_model_versions("name = 'trips'"), key=lambda model: int(model.version))
    assert [model.tags["estimator-pipelines.version"] for model in found] == ["1001", "1002"]
    run = client.get_run(found[1].run_id)
    assert run.info.status == "FINISHED"
    expected = {"auc": 0.75, "precision_3": 0.5, "test_auc": 0.7, "test_example_count": 9.0}
    assert run.data.metrics == expected
    params = {key: run.data.params[key] for key in ("data.label", "columns.a_b", "serving_check.rows")}
    assert params == {"data.label": "y", "columns.a_b": "number", "serving_check.rows": "1000"}
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {
        "model",
        f"{record.run_id}.html",
    }
    monkeypatch.setenv("MLFLOW_TRACKING_URI", pushes.uri)
    model = mlflow.pyfunc.load_model("models:/trips/2")
    rows = {"x": np.array([1.5, 2.5], np.float32), "name": np.array(["a", "b"])}
    answer = model.predict(rows)
    assert list(answer["y"]) == [3.0, 5.0]
    assert list(answer["shout"]) == [b"A", b"B"]


@pytest.mark.more
def test_a_registration_that_was_interrupted_is_completed_by_the_next_one(mlflow, pushes, monkeypatch):
    pushes.push(1000)

    def lose_connection(*args, **kwargs):
        raise ConnectionError("the server went away")

    with monkeypatch.context() as broken:
        broken.setattr(mlflow.MlflowClient, "create_model_version", lose_connection)
        reason = pushes.register()
    assert reason == (
        f"version 1000 is not registered in MLflow ({pushes.uri}): ConnectionError: the server went away. It "
        "is registered after the next run"
    )
    assert pushes.register(status="unchanged") is None
    client = mlflow.MlflowClient(pushes.uri, pushes.uri)
    (model,) = client.search_model_versions("name = 'trips'")
    (run,) = client.search_runs([client.get_experiment_by_name("trips").experiment_id])
    assert (model.run_id, run.info.status) == (run.info.run_id, "FINISHED")


def test_a_server_that_is_down_is_named_without_its_password(mlflow, pushes, monkeypatch):
    pushes.push(1000)
    monkeypatch.setenv("MLFLOW_ADDRESS", "http://ann:s3cret@127.0.0.1:1")
    pushes.uri = "${MLFLOW_ADDRESS}"
    reason = pushes.register()
    assert reason.startswith(
        "version 1000 is not registered in MLflow (${MLFLOW_ADDRESS}): MlflowException: "
    )
    assert "s3cret" not in reason


def test_mlflow_is_only_imported_if_it_is_configured(pushes, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)  # to import it would fail
    record = make_record(config=config_of(None))
    assert register_versions(pushes.root, record) is None
    named = record.changed(config=config_of("http://mlflow:5000"))
    assert "halted; None in sys.modules" in register_versions(pushes.root, named)
    for status in ("held", "failed"):
        assert register_versions(pushes.root, named.changed(status=status)) is None


def test_a_run_without_mlflow_s_client_does_not_begin(data, root, display, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    settings = ("pusher.mlflow=http://mlflow:5000",)
    with pytest.raises(BadInputError, match="client: `pip install mlflow-skinny`"):
        read_inputs(RunRequest(root, data=str(data), label="y", settings=settings), display)
