"""The text is read back by Prometheus' own parser."""

import urllib.request

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pipelines.scheduling.monitoring.metrics import (
    PipelineCollector,
    registry,
    serving_metrics,
    write_metrics,
)
from pipelines.scheduling.ticks import iso, time_tick
from tests.pipelines.scheduling.conftest import at
from tests.pushed_versions import serve_version

PREFIX = "estimator_pipelines_"


def parsed(text):
    """Returns values by name and labels; names are as Prometheus asks."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.name.startswith(PREFIX)
        assert family.type in ("counter", "gauge")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            found[(sample.name.removeprefix(PREFIX), *sample.labels.values())] = sample.value
    return found


def shown_by(collector):
    return parsed(generate_latest(registry(collector)).decode())


@pytest.fixture
def collector(root, clock, record, add):
    add()

    def run(minute, status, minutes, **fields):
        times = {"started": iso(at(minute)), "finished": minutes and iso(at(minute + minutes))}
        tick = time_tick("trips", at(minute)).id
        record(f"run-{minute}", status=status, scheduled_by=tick, **times, **fields)

    run(1, "pushed", 0.5, version="9", metrics={"auc": 0.75, "loss": None})
    run(2, "failed", 2, notification="no mail", is_bad_input=True)
    run(5, "running", None)
    for version in (8, 9):
        serve_version(root.serving, version, "run-1")
    clock.pass_by(7.9 * 60)
    return PipelineCollector(root, clock)


def test_runs_that_no_schedule_has_started(root, clock, record):
    def now():
        return {key: value for key, value in shown_by(collector).items() if key[0].startswith("newest_")}

    collector = PipelineCollector(root, clock)
    assert now() == {}
    record("20260131-100000", status="pushed", started=iso(at(0)), finished=iso(at(3)))
    record("20260131-100500", status="failed", started=iso(at(5)), finished=iso(at(6.5)))
    found = now()
    statuses = {key[1] for key, value in found.items() if key[0] == "newest_run_status" and value}
    assert statuses == {"failed"}
    assert len([key for key in found if key[0] == "newest_run_status"]) == 8
    assert {key[0]: value for key, value in found.items() if key[0] != "newest_run_status"} == {
        "newest_run_start_time_seconds": at(5).timestamp(),
        "newest_run_end_time_seconds": at(6.5).timestamp(),
        "newest_run_duration_seconds": 90,
        "newest_good_run_end_time_seconds": at(3).timestamp(),
    }
    # One that was killed has not ended.
    record("20260131-100800", status="running", started=iso(at(8)), finished=None)
    found = now()
    assert found["newest_run_status", "interrupted"] == 1
    assert found["newest_run_start_time_seconds",] == at(8).timestamp()
    assert found["newest_run_end_time_seconds",] == at(6.5).timestamp()


def test_the_values_are_those_of_the_runs(collector):
    found = shown_by(collector)
    counts = {key[2]: value for key, value in found.items() if key[0] == "scheduled_runs_total"}
    none = dict.fromkeys(("unchanged", "finished", "held", "not_blessed"), 0)
    assert counts == {"pushed": 1, "failed": 1, **none}
    expected = {
        ("schedule_enabled", "trips"): 1,
        ("schedule_running", "trips"): 0,  # no scheduler works that goes on with the tick of 5
        ("schedule_interrupted", "trips"): 1,
        ("schedule_next_time_seconds", "trips"): at(6).timestamp(),
        ("schedule_due_ticks", "trips"): 2,  # of minutes 6 and 7
        ("schedule_late_ticks", "trips"): 2,
        ("schedule_has_problem", "trips"): 0,
        ("notification_failed", "trips"): 1,
        ("future_records",): 0,
        ("last_run_end_time_seconds", "trips"): at(4).timestamp(),
        ("last_good_run_end_time_seconds", "trips"): at(1.5).timestamp(),
        ("last_run_duration_seconds", "trips"): 120,
        ("last_run_status", "trips", "failed"): 1,
        ("last_run_status", "trips", "pushed"): 0,
        ("served_version",): 9,
        ("served_model_metric", "auc"): 0.75,
        ("served_model_push_time_seconds",): at(1.5).timestamp(),
        ("metrics_time_seconds",): at(7.9).timestamp(),
    }
    assert {key: found.get(key) for key in expected} == expected
    assert found[("schedule_late_seconds", "trips")] == pytest.approx(1.9 * 60)
    assert ("served_model_metric", "loss") not in found


def test_nothing_is_served_yet(root, clock, store):
    store.folder.mkdir(parents=True)
    assert list(shown_by(PipelineCollector(root, clock))) == [
        ("damaged_files",),
        ("future_records",),
        ("metrics_time_seconds",),
    ]


def test_a_damaged_schedule_hides_no_other(collector, store):
    store.file("other").write_text("{")
    found = shown_by(collector)
    assert found[("damaged_files",)] == 1
    assert found[("schedule_enabled", "trips")] == 1


def test_the_file_is_replaced(collector, tmp_path):
    file = tmp_path / "metrics" / "pipelines.prom"
    write_metrics(collector, file)
    assert parsed(file.read_text())[("served_version",)] == 9
    write_metrics(collector, file)
    assert [one.name for one in file.parent.iterdir()] == ["pipelines.prom"]


def test_metrics_are_served_on_a_free_port(collector):
    with serving_metrics(collector, "127.0.0.1", 0) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert parsed(answer.read().decode())[("served_version",)] == 9
        with pytest.raises(OSError, match="in use"), serving_metrics(collector, "127.0.0.1", port):
            pass
