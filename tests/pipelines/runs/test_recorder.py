import pytest

from components.pusher.provenance import Provenance
from pipelines.config.evaluator import ThresholdConfig
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.check_records import check_records
from pipelines.root.records import ComponentRecord, RunOutcome, VerdictRecord
from pipelines.runs.checks.component_checks import Findings
from pipelines.runs.plan.run_plan import RunRequest, plan_run
from pipelines.runs.recorder import RunRecorder, start_record
from tests.pushed_versions import write_version


@pytest.fixture
def plan(data, tmp_path, display):
    return plan_run(RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y"), display)


def test_the_record_of_a_new_run(plan, killed, tmp_path):
    record = start_record(plan)
    assert record.run_id > killed.run_id
    assert (record.name, record.status, record.finished) == ("data", "running", None)
    assert record.log == str(tmp_path / "root" / "logs" / f"{record.run_id}.log")
    assert record.data_fingerprint == plan.profile.fingerprint
    assert len(record.code_fingerprint) == 64  # SHA-256
    assert record.thresholds == ()
    assert record.baseline_version is None


def test_the_spans_are_recorded(spans, tmp_path, display):
    request = RunRequest(root=Root(tmp_path / "root"), data=spans, label="y", settings=("data.spans=8..9",))
    assert start_record(plan_run(request, display)).spans == (
        {"span": 8, "version": 1, "num_files": 1},
        {"span": 9, "version": 1, "num_files": 1},
    )


def test_the_baseline_is_what_served_before_the_run_and_not_what_it_pushed_itself(plan, killed):
    from dataclasses import replace

    base = plan.root.serving
    for version, run_id in ((1000, "a"), (2000, "b"), (3000, killed.run_id)):
        write_version(Provenance(run_id, "m"), str(base / str(version)), str(base))
    assert start_record(plan).baseline_version == "3000"
    assert start_record(replace(plan, unfinished=killed)).baseline_version == "2000"


def test_a_resumed_run_keeps_its_id_and_start(plan, killed):
    from dataclasses import replace

    record = start_record(replace(plan, unfinished=killed))
    assert (record.run_id, record.started) == (killed.run_id, killed.started)
    assert (record.status, record.components) == ("running", ())


def test_the_tick_of_a_schedule_stays_with_its_run(data, tmp_path, display, killed):
    from dataclasses import replace

    request = RunRequest(
        root=Root(tmp_path / "root"), data=str(data), label="y", scheduled_by="nightly/20260131T030000Z"
    )
    plan = plan_run(request, display)
    record = start_record(plan)
    assert record.scheduled_by == "nightly/20260131T030000Z"
    assert record.summary()["scheduled_by"] == "nightly/20260131T030000Z"
    # Somebody goes on with it by hand.
    by_hand = replace(plan, scheduled_by=None, unfinished=record)
    assert start_record(by_hand).scheduled_by == "nightly/20260131T030000Z"
    none = start_record(replace(plan, scheduled_by=None, unfinished=killed))
    assert none.scheduled_by is None
    assert "scheduled_by" not in none.summary()
    assert (record.notification, none.notification) == ("pending", "")


def test_a_resumed_run_keeps_its_number_and_its_end_is_told_again(plan, killed):
    from dataclasses import replace

    records = plan.root.records
    record = start_record(replace(plan, scheduled_by="nightly/20260131T030000Z"))
    assert (record.number, record.attempt) == (1, 1)
    records.write(record.changed(status="failed", notification=""))
    resumed = start_record(replace(plan, unfinished=records.newest()))
    assert (resumed.run_id, resumed.number, resumed.attempt) == (record.run_id, 1, 2)
    assert resumed.notification == "pending"
    records.write(resumed.changed(status="unchanged"))
    with pytest.raises(BadInputError, match="has run nightly/20260131T030000Z already"):
        start_record(replace(plan, scheduled_by="nightly/20260131T030000Z"))


def test_every_step_is_on_disk_at_once(plan, display, shown, tmp_path):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, start_record(plan), display)
    assert [record.status for record in root.records.read_all()] == ["running"]
    recorder.note("some rows are left out")
    recorder.add_component(ComponentRecord("Transform", "finished", 1.5))
    recorder.add_component(ComponentRecord("Trainer", "failed", 0.5))
    (record,) = root.records.read_all()
    assert record.notes == ("some rows are left out",)
    assert [part.name for part in record.components] == ["Transform", "Trainer"]
    assert "! some rows are left out\n" in shown.getvalue()
    (check,) = check_records([], [ThresholdConfig(metric="auc", lower=0.6)], {"auc": 0.9}, {}, {})
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
    report = tmp_path / "root" / "runs" / f"{record.run_id}.html"
    assert record.report == str(report)
    assert "some rows are left out" in report.read_text()
    assert recorder.record == record


def test_the_findings_of_a_check_are_recorded_at_once(plan, display, shown, tmp_path, monkeypatch):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, start_record(plan), display)
    recorder.note("read")
    written = []
    monkeypatch.setattr(type(root.records), "write", lambda self, record: written.append(record))
    recorder.add_findings(
        Findings(
            ("odd", "odder"),
            label_comparison={"label": "y"},
            models=({"name": "linear"},),
            details={"search": {"trials": []}},
            verdict=VerdictRecord({"auc": 0.9}, {}, {}, doubts=("the labels",)),
        )
    )
    (record,) = written
    assert record.notes == ("read", "odd", "odder")
    assert (record.label_by_split, record.models) == ({"label": "y"}, ({"name": "linear"},))
    assert (record.metrics, record.doubts) == ({"auc": 0.9}, ("the labels",))
    assert root.details(record.run_id).read_all() == {"search": {"trials": []}}
    assert "! odd\n! odder\n" in shown.getvalue()


def test_what_a_run_is_made_of_is_recorded(plan, data):
    record = start_record(plan)
    (file,) = record.data_files
    assert (file["path"], file["bytes"]) == (str(data), data.stat().st_size)
    assert record.environment["python"]


def test_details_and_the_graph_reach_the_report(plan, display, tmp_path):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, start_record(plan), display)
    recorder.add_graph({"StatisticsGen": ["CsvExampleGen"], "CsvExampleGen": []})
    drift = [{"split": "train", "column": "x", "measure": "l_infty", "value": 0.25, "limit": 0.1}]
    recorder.add_findings(Findings(details={"anomalies": {"found": [], "drift": drift}}))
    recorder.end(RunOutcome("failed", reason="no space"))
    (record,) = root.records.read_all()
    assert record.graph["StatisticsGen"] == ["CsvExampleGen"]
    page = (tmp_path / "root" / "runs" / f"{record.run_id}.html").read_text()
    assert "L-infinity distance" in page
    assert f'href="{record.run_id}.html"' in (tmp_path / "root" / "runs" / "index.html").read_text()


def test_the_root_is_tidied_behind_the_record_and_before_the_pages(plan, display, tmp_path):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, start_record(plan), display)
    seen = []

    def tidy():
        (record,) = root.records.read_all()
        seen.append((record.status, sorted(file.suffix for file in root.runs.iterdir())))

    recorder.end(RunOutcome("failed", reason="no space"), tidy)
    assert seen == [("failed", [".json"])]
    assert (root.runs / "index.html").exists()


def test_a_report_that_cannot_be_made_does_not_cost_the_record(plan, display, shown, tmp_path):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, start_record(plan), display)
    recorder.add_findings(Findings(details={"anomalies": {"found": "not what it should be"}}))
    recorder.end(RunOutcome("pushed", version="7"))
    (record,) = root.records.read_all()
    assert (record.status, record.version, record.report) == ("pushed", "7", None)
    assert record.notes[-1].startswith("the report could not be made: TypeError")
    assert "the report could not be made" in shown.getvalue()
