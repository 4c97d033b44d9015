from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.config.evaluator import ThresholdConfig
from pipelines.errors import BadInputError
from pipelines.root.check_records import check_records
from pipelines.root.history import unconfirmed_pushes
from pipelines.root.records import ComponentRecord, RunOutcome, VerdictRecord
from pipelines.runs import recorder as recorder_module
from pipelines.runs.checks.component_checks import Findings
from pipelines.runs.recorder import RunRecorder, start_record
from tests.pushed_versions import serve_version

NIGHTLY = "nightly/20260131T030000Z"


@pytest.fixture
def begin(plan, root, display):
    """Returns a function that begins a run, and returns its recorder."""
    return lambda: RunRecorder(root, start_record(plan()), display)


def test_the_record_of_a_new_run(plan, data, killed, root):
    planned = plan()
    record = start_record(planned)
    assert record.run_id > killed.run_id
    assert (record.name, record.status, record.finished) == ("data", "running", None)
    assert record.log == str(root.logs / f"{record.run_id}.log")
    assert record.data_fingerprint == planned.profile.fingerprint
    assert len(record.code_fingerprint) == 64  # SHA-256
    assert record.thresholds == ()
    assert record.baseline_version is None
    (file,) = record.data_files
    assert (file["path"], file["bytes"]) == (str(data), data.stat().st_size)
    assert record.environment["python"]


def test_the_spans_are_recorded(plan, spans):
    assert start_record(plan("data.spans=8..9", data=spans)).spans == (
        {"span": 8, "version": 1, "num_files": 1},
        {"span": 9, "version": 1, "num_files": 1},
    )


def test_the_baseline_is_what_served_before_the_run_and_not_what_it_pushed_itself(plan, killed, root):
    for version, run_id in ((1000, "a"), (2000, "b"), (3000, killed.run_id)):
        serve_version(root.serving, version, run_id)
    assert start_record(plan()).baseline_version == "3000"
    resumed = start_record(replace(plan(), unfinished=killed))
    assert resumed.baseline_version == "2000"
    assert (resumed.run_id, resumed.started) == (killed.run_id, killed.started)
    assert (resumed.status, resumed.components) == ("running", ())


def test_the_tick_of_a_schedule_stays_with_its_run(plan, killed):
    planned = plan(scheduled_by=NIGHTLY)
    record = start_record(planned)
    assert record.scheduled_by == record.summary()["scheduled_by"] == NIGHTLY
    # Somebody goes on with it by hand.
    by_hand = replace(planned, scheduled_by=None, unfinished=record)
    assert start_record(by_hand).scheduled_by == NIGHTLY
    none = start_record(replace(planned, scheduled_by=None, unfinished=killed))
    assert none.scheduled_by is None
    assert "scheduled_by" not in none.summary()
    assert (record.notification, none.notification) == ("pending", "")


@pytest.mark.usefixtures("killed")
def test_a_resumed_run_keeps_its_number_and_its_end_is_told_again(plan, root):
    records = root.records
    record = start_record(plan(scheduled_by=NIGHTLY))
    assert (record.number, record.attempt) == (1, 1)
    records.write(record.changed(status="failed", notification=""))
    resumed = start_record(replace(plan(), unfinished=records.newest()))
    assert (resumed.run_id, resumed.number, resumed.attempt) == (record.run_id, 1, 2)
    assert resumed.notification == "pending"
    records.write(resumed.changed(status="unchanged"))
    with pytest.raises(BadInputError, match=f"has run {NIGHTLY} already"):
        start_record(plan(scheduled_by=NIGHTLY))


def test_every_step_is_on_disk_at_once(begin, shown, root):
    recorder = begin()
    assert [record.status for record in root.records.read_all()] == ["running"]
    recorder.warn("some rows are left out")
    recorder.add_component(ComponentRecord("Transform", "finished", 1.5))
    recorder.add_component(ComponentRecord("Trainer", "failed", 0.5))
    (record,) = root.records.read_all()
    assert record.notes == ("some rows are left out",)
    assert [part.name for part in record.components] == ["Transform", "Trainer"]
    assert "! some rows are left out\n" in shown.getvalue()
    (check,) = check_records(
        [], [ThresholdConfig(metric="auc", lower=0.6)], {"Overall": {"auc": 0.9}}, {}, {}
    )
    verdict = VerdictRecord({"auc": 0.9}, {"auc": 0.8}, {"x:1": {"auc": None}}, (check,), ("the loss",))
    recorder.add_findings(Findings(verdict=verdict))
    (record,) = root.records.read_all()
    assert (record.status, record.metrics) == ("running", {"auc": 0.9})
    assert (record.checks, record.not_checked) == ((check,), ("the loss",))
    recorder.end(RunOutcome("pushed", version="7"))
    (record,) = root.records.read_all()
    assert (record.status, record.version, record.metrics) == ("pushed", "7", {"auc": 0.9})
    assert (record.baseline_metrics, record.slices) == ({"auc": 0.8}, {"x:1": {"auc": None}})
    assert record.finished >= record.started
    report = root.runs / f"{record.run_id}.html"
    assert record.report == str(report)
    assert "some rows are left out" in report.read_text()
    assert recorder.record == record


def test_the_findings_of_a_check_are_recorded_at_once(begin, shown, root, monkeypatch):
    recorder = begin()
    recorder.note("read")
    written = []
    monkeypatch.setattr(type(root.records), "write", lambda self, record: written.append(record))
    recorder.add_findings(
        Findings(
            ("chosen",),
            ("odd", "odder"),
            label_comparison={"label": "y"},
            models=({"name": "linear"},),
            details={"search": {"trials": []}},
            verdict=VerdictRecord({"auc": 0.9}, {}, {}, doubts=("the labels",)),
        )
    )
    (record,) = written
    assert record.notes == ("read", "chosen", "odd", "odder")
    assert (record.label_by_split, record.models) == ({"label": "y"}, ({"name": "linear"},))
    assert (record.metrics, record.doubts) == ({"auc": 0.9}, ("the labels",))
    assert root.details(record.run_id).read_all() == {"search": {"trials": []}}
    assert "i read\ni chosen\n! odd\n! odder\n" in shown.getvalue()


def test_details_and_the_graph_reach_the_report(begin, root):
    recorder = begin()
    recorder.add_graph({"StatisticsGen": ["CsvExampleGen"], "CsvExampleGen": []})
    drift = [{"split": "train", "column": "x", "measure": "l_infty", "value": 0.25, "limit": 0.1}]
    recorder.add_findings(Findings(details={"anomalies": {"found": [], "drift": drift}}))
    recorder.end(RunOutcome("failed", reason="no space"))
    (record,) = root.records.read_all()
    assert record.graph["StatisticsGen"] == ["CsvExampleGen"]
    assert "L-infinity distance" in (root.runs / f"{record.run_id}.html").read_text()
    assert f'href="{record.run_id}.html"' in (root.runs / "index.html").read_text()


def test_the_root_is_tidied_behind_the_record_and_before_the_pages(begin, root):
    recorder = begin()
    seen = []

    def tidy():
        (record,) = root.records.read_all()
        seen.append((record.status, sorted(file.suffix for file in root.runs.iterdir())))

    recorder.end(RunOutcome("failed", reason="no space"), tidy)
    assert seen == [("failed", [".json"])]
    assert (root.runs / "index.html").exists()


def test_what_mlflow_did_not_take_is_said_and_the_push_is_complete(begin, shown, root, monkeypatch):
    seen = []

    def refuse(its_root, record):
        seen.append((its_root, record.status, Path(record.report).exists()))
        return "version 7 is not registered"

    monkeypatch.setattr(recorder_module, "register_versions", refuse)
    begin().end(RunOutcome("pushed", version="7"))
    assert seen == [(root, "pushed", True)]
    (record,) = root.records.read_all()
    assert (record.status, record.reason) == ("pushed", None)
    assert record.summary()["not_registered"] == "version 7 is not registered"
    assert "! version 7 is not registered" in shown.getvalue()
    assert unconfirmed_pushes(root) == ()  # the next run may find that nothing has changed


def test_a_report_that_cannot_be_made_does_not_cost_the_record(begin, shown, root):
    recorder = begin()
    recorder.add_findings(Findings(details={"anomalies": {"found": "not what it should be"}}))
    recorder.end(RunOutcome("pushed", version="7"))
    (record,) = root.records.read_all()
    assert (record.status, record.version, record.report) == ("pushed", "7", None)
    assert record.notes[-1].startswith("the report could not be made: TypeError")
    assert "the report could not be made" in shown.getvalue()
