import logging
from types import SimpleNamespace

import pandas
import pytest

from pipelines.root import Root
from pipelines.serving.request_drift import TrainingData
from pipelines.serving.request_files import SampleLimits, sampled_rows
from pipelines.serving.saved_model import Column
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request_monitor import RequestMonitor
from pipelines.serving.server.server_settings import ServerSettings
from tests.pipelines import sum_models
from tests.pipelines.serving.server.conftest import served

PREFIX = "estimator_pipelines_serving_"


def figure(text, name):
    """Returns a figure of the metrics, or None."""
    found = [line for line in text.splitlines() if line.startswith(f"{PREFIX}{name} ")]
    return float(found[0].split()[-1]) if found else None


def monitor_of(root, metrics):
    return RequestMonitor(Root(root), SampleLimits(1.0), metrics, lambda: 1_000.0, seed=1)


@pytest.mark.more
def test_rows_of_both_protocols_are_sampled_and_tensors_are_not(push):
    root = push("classifier", 5)
    settings = ServerSettings(poll_secs=0.05, monitor_secs=3_600.0)
    with served(root, settings, sample=SampleLimits(1.0)) as client:
        assert client.post("/v1/models/sums:predict", {"instances": [{"x": 1}]}).is_success
        tensor = {"name": "n", "shape": [1], "datatype": "INT64", "data": [7]}
        assert client.post("/v2/models/sums/infer", {"inputs": [tensor]}).is_success
        dense = {"x": [3.0], "n": [1], "city": [""]}
        body = {"signature_name": "serving_rows", "inputs": dense}
        assert client.post("/v1/models/sums:predict", body).is_success
        bad = client.post("/v1/models/sums:predict", {"instances": [{"x": "no number"}]})
        assert bad.status_code == 400
    # They are written when the server ends, at the latest.
    rows = sampled_rows(root / "requests", 5, 100)
    assert rows[:2] == [{"x": 1.0}, {"n": 7}]
    assert all(row.keys() <= {"x", "n", "city"} for row in rows)


@pytest.mark.more
def test_no_row_is_kept_by_default(push):
    root = push("classifier", 5)
    with served(root) as client:
        assert client.post("/v1/models/sums:predict", {"instances": [{"x": 1}]}).is_success
    assert not (root / "requests").exists()


@pytest.fixture
def model():
    return SimpleNamespace(version=5, columns={"x": Column("x", "FLOAT"), "city": Column("city", "BYTES")})


def test_the_drift_is_in_the_metrics(push, model):
    root = push("classifier", 5)
    sum_models.keep_statistics(
        root, 5, pandas.DataFrame({"x": [float(x) for x in range(1_000)], "city": ["Oslo"] * 1_000})
    )
    metrics = ServerMetrics()
    monitor = monitor_of(root, metrics)
    monitor.add(model, {"x": [5.0] * 99, "city": [b"Moss"] * 99}, 99)
    monitor.update(model)
    text = metrics.text().decode()
    assert figure(text, "sampled_rows") == 99
    assert "request_drift{" not in text  # too few rows
    monitor.add(model, {"x": [5.0, None], "city": [b"Moss"] * 2}, 2)
    monitor.update(model)
    text = metrics.text().decode()
    assert figure(text, 'request_drift{column="city",measure="l_infinity"}') == 1.0
    assert figure(text, 'request_drift{column="x",measure="missing"}') == pytest.approx(1 / 101)
    assert figure(text, 'request_drift{column="x",measure="jensen_shannon"}') > 0.5
    assert figure(text, 'request_drift_by_chance{column="x",measure="jensen_shannon"}') < 0.3
    model.version = 6  # a push: its drift is not known yet
    monitor.update(model)
    text = metrics.text().decode()
    assert (figure(text, "sampled_rows"), "request_drift{" in text) == (0, False)


def test_a_version_without_statistics_is_logged_once(push, model, caplog):
    metrics = ServerMetrics()
    monitor = monitor_of(push("classifier", 5), metrics)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            monitor.add(model, {"x": [5.0] * 100}, 100)
            monitor.update(model)
    assert [record.message[:31] for record in caplog.records] == ["The statistics of the data that"]
    assert figure(metrics.text().decode(), "sampled_rows") == 300


def test_a_folder_that_cannot_be_written_to_stops_nothing(push, model, caplog):
    root = push("classifier", 5)
    (root / "requests").write_text("a file")
    monitor = monitor_of(root, ServerMetrics())
    monitor.add(model, {"x": [5.0]}, 1)
    monitor.update(model)
    assert "the sampled requests cannot be written" in caplog.text
    (root / "requests").unlink()
    monitor.update(model)
    assert sampled_rows(root / "requests", 5, 10) == [{"x": 5.0}]
    caplog.clear()
    (root / "requests").rename(root / "elsewhere")
    (root / "requests").write_text("a file")
    for _ in range(3):
        monitor.add(model, {"x": [5.0]}, 1)
        monitor.update(model)
    assert len(caplog.records) == 1  # the same failure again


def test_statistics_that_cannot_be_read_are_not_those_of_the_version_before(push, model, monkeypatch):
    root = push("classifier", 5)
    frame = pandas.DataFrame({"x": [float(x) for x in range(1_000)]})
    sum_models.keep_statistics(root, 5, frame)
    metrics = ServerMetrics()
    monitor = monitor_of(root, metrics)
    for version in (5, 6):
        model.version = version
        monitor.add(model, {"x": [5.0] * 100}, 100)
    model.version = 5
    monitor.update(model)
    assert "request_drift{" in metrics.text().decode()
    training = TrainingData.read_version(Root(root), 5)

    def locked(root, version):
        raise RuntimeError("database is locked")

    monkeypatch.setattr(TrainingData, "read_version", locked)
    model.version = 6
    for _ in range(2):
        with pytest.raises(RuntimeError, match="locked"):
            monitor.update(model)
        assert "request_drift{" not in metrics.text().decode()
    monkeypatch.setattr(TrainingData, "read_version", lambda root, version: training)
    monitor.update(model)
    assert "request_drift{" in metrics.text().decode()
