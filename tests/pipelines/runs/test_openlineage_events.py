"""The events of real runs: they keep OpenLineage's rules, and say what was read, written and pushed."""

import hashlib
import json
import socket
import threading
import uuid
from collections import Counter
from dataclasses import asdict
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import attr
import pytest
from openlineage.client import event_v2, facet_v2

from pipelines.root import Root
from pipelines.root.records import ComponentRecord, RunOutcome, RunRecord
from pipelines.runs import openlineage_events
from pipelines.runs.openlineage_events import Datasets
from pipelines.runs.recorder import RunRecorder, record_killed_runs
from pipelines.steps.step_folders import FinishedStep
from tests.pipelines.steps.test_push_destination import DEFINITION as PUSHING

FACETS = {
    "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet,
    "tags": facet_v2.tags_run.TagsRunFacet,
    "parent": facet_v2.parent_run.ParentRunFacet,
    "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
    "nominalTime": facet_v2.nominal_time_run.NominalTimeRunFacet,
    "jobType": facet_v2.job_type_job.JobTypeJobFacet,
    "version": facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet,
    "schema": facet_v2.schema_dataset.SchemaDatasetFacet,
    "dataSource": facet_v2.datasource_dataset.DatasourceDatasetFacet,
    "inputStatistics": facet_v2.input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
}


TO_FILE = "lineage.openlineage=file"

"""Classes that OpenLineage generates from the JSON schema of each facet."""


@pytest.fixture
def own(killed):
    """The record of a run of ours that begins, with events."""
    return killed.changed(
        config={**killed.config, "lineage": {"openlineage": "file", "namespace": "shop"}},
        data_files=({"path": killed.config["data"]["path"], "bytes": 241, "sha256": "ab" * 32},),
        columns=({"name": "x", "kind": "number"}, {"name": "y", "kind": "category"}),
        num_rows=40,
        scheduled_by="nightly/20260102T030000Z",
    )


def read(root):
    """Returns the events of a root, each of which is valid; every attempt has a start and one end."""
    events = [json.loads(line) for line in root.openlineage.read_text().splitlines()]
    for event in events:
        check_event(event)
    for attempt, kinds in states(events).items():
        assert kinds["START"] == 1, attempt
        assert sum(kinds[end] for end in ("COMPLETE", "FAIL", "ABORT")) == 1, attempt
    return events


def states(events):
    runs = {}
    for event in events:
        runs.setdefault(event["run"]["runId"], Counter())[event["eventType"]] += 1
    return runs


def check_event(event):
    required = {"eventTime", "eventType", "producer", "schemaURL", "run", "job"}
    assert required <= event.keys() <= required | {"inputs", "outputs"}
    assert event["schemaURL"].endswith("/OpenLineage.json#/$defs/RunEvent")
    assert event["eventType"] in {state.value for state in event_v2.RunState}
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert urlsplit(event["producer"]).scheme
    assert event["run"].keys() == {"runId", "facets"}
    uuid.UUID(event["run"]["runId"])
    assert event["job"].keys() == {"namespace", "name", "facets"}
    for data in (*event["inputs"], *event["outputs"]):
        assert {"namespace", "name"} <= data.keys()
        assert data.keys() <= {"namespace", "name", "facets", "inputFacets", "outputFacets"}
    for holder in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for kind in ("facets", "inputFacets", "outputFacets"):
            for name, facet in holder.get(kind, {}).items():
                check_fields(FACETS[name], facet)


def check_fields(kind, values):
    """Checks a facet's fields, at any depth, against a class that is generated from the schema."""
    attr.resolve_types(kind)
    fields = {field.name: field for field in attr.fields(kind)}
    assert values.keys() <= fields.keys()
    for name, field in fields.items():
        if field.default is attr.NOTHING:
            assert name in values
        if field.validator and name in values:
            field.validator(None, field, values[name])
    if "_schemaURL" in fields:
        assert values["_schemaURL"] == kind._get_schema()
        assert urlsplit(values["_producer"]).scheme


def summary(events):
    return [(event["job"]["name"], event["eventType"]) for event in events]


def datasets(event, kind):
    return {data["name"]: data["facets"].get("version", {}).get("datasetVersion") for data in event[kind]}


def tags(event):
    return {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}


def last(events, job):
    return [event for event in events if event["job"]["name"] == job][-1]


OF_TWO_STEPS = [
    ("team", "START"), ("team.Write", "START"), ("team.Write", "COMPLETE"),
    ("team.Copy", "START"), ("team.Copy", "COMPLETE"), ("team", "COMPLETE"),
]  # fmt: skip


def test_a_run_and_its_steps_start_and_complete(run_team, team):
    record = run_team(TO_FILE)
    events = read(team.root)
    assert summary(events) == OF_TWO_STEPS
    assert {event["job"]["namespace"] for event in events} == {"team"}
    write, copy = (component.step for component in record.components)
    assert datasets(last(events, "team.Write"), "outputs") == {"team.Write.examples": write}
    assert datasets(last(events, "team.Copy"), "inputs") == {"team.Write.examples": write}
    assert datasets(last(events, "team.Copy"), "outputs") == {"team.Copy.model": copy}
    parents = {
        event["run"]["facets"]["parent"]["run"]["runId"] for event in events if event["job"]["name"] != "team"
    }
    assert parents == {events[0]["run"]["runId"]}
    assert tags(events[-1])["run_id"] == record.run_id
    assert tags(events[-1])["status"] == "finished"


def test_a_run_without_the_section_has_no_events(run_team, team):
    assert run_team().status == "finished"
    assert not team.root.openlineage.exists()


def test_a_resumed_run_is_another_run_of_the_same_job(run_team, team):
    failed = run_team(TO_FILE, arguments={"times": "-1"})
    resumed = run_team(TO_FILE, resume=True)
    assert (failed.attempt, resumed.attempt) == (1, 2)
    events = read(team.root)
    ends = [event for event in events if event["eventType"] not in ("START", "RUNNING")]
    assert summary(ends) == [
        ("team.Write", "COMPLETE"), ("team.Copy", "FAIL"), ("team", "FAIL"),
        ("team.Write", "COMPLETE"), ("team.Copy", "COMPLETE"), ("team", "COMPLETE"),
    ]  # fmt: skip
    for event in ends[1:3]:
        assert "times is negative" in event["run"]["facets"]["errorMessage"]["message"]
    assert tags(ends[3])["status"] == "cached"
    assert datasets(ends[3], "outputs") == datasets(ends[0], "outputs")
    assert {tags(event)["run_id"] for event in events} == {failed.run_id}


def test_a_signal_aborts_the_run_and_its_step(run_team, team, handles_signals):
    team.define("""
        import signal

        @component
        def Stop(model: OutputArtifact[Model]):
            signal.raise_signal(signal.SIGTERM)
            import time
            time.sleep(30)

        def create_pipeline():
            return pipeline(Stop())
    """)
    run_team(TO_FILE)
    assert summary(read(team.root))[2:] == [("team.Stop", "ABORT"), ("team", "ABORT")]


def test_a_pushed_version_is_an_output_of_its_step_and_of_the_run(run_team, team):
    team.define(PUSHING)
    record = run_team(TO_FILE, arguments={"folder": str(team.root.serving)})
    events = read(team.root)
    served = {str(team.root.serving): record.version}
    assert served.items() <= datasets(last(events, "team.Pusher"), "outputs").items()
    assert datasets(events[-1], "outputs") == served


def test_an_imported_folder_is_an_input_of_its_step_and_of_the_run(run_team, team, tmp_path):
    folder = tmp_path / "imported"
    folder.mkdir()
    (folder / "text").write_text("ab")
    team.define("""
        def create_pipeline(place):
            rows = Importer(source_uri=place, artifact_type=Examples).with_id("Rows")
            return pipeline(rows, Copy(examples=rows.outputs["result"]))
    """)
    run_team(TO_FILE, arguments={"place": str(folder)})
    (folder / "text").write_text("changed")
    run_team(TO_FILE, arguments={"place": str(folder)})
    events = read(team.root)
    versions = [
        datasets(event, "inputs")[str(folder)]
        for event in events
        if event["eventType"] == "COMPLETE" and event["job"]["name"] in ("team", "team.Rows")
    ]
    assert versions[0] == versions[1] != versions[2] == versions[3]


def test_a_killed_run_is_aborted_by_the_next_one(own, tmp_path, display):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, own, display)
    recorder.add_graph({"CsvExampleGen": [], "Trainer": ["CsvExampleGen"], "Pusher": ["Trainer"]})
    recorder.begin()
    recorder.component_started("CsvExampleGen")
    recorder.add_component(ComponentRecord("CsvExampleGen", "finished", 1.5))
    recorder.component_started("Trainer")
    record_killed_runs(root)
    events = read(root)
    assert summary(events)[-2:] == [("data.Trainer", "ABORT"), ("data", "ABORT")]
    assert tags(events[-1])["reason"] == "the process was killed"


def test_the_data_of_a_run_of_ours_have_fingerprint_schema_and_size(own, tmp_path, display, data):
    root = Root(tmp_path / "root")
    recorder = RunRecorder(root, own, display)
    recorder.begin()
    recorder.add_component(ComponentRecord("Trainer", "finished", 2.5))  # as on Kubeflow
    recorder.end(RunOutcome("pushed", version="7"))
    events = read(root)
    assert summary(events) == [
        ("data", "START"), ("data.Trainer", "START"), ("data.Trainer", "COMPLETE"), ("data", "COMPLETE"),
    ]  # fmt: skip
    began, ended = (datetime.fromisoformat(event["eventTime"]) for event in events[1:3])
    assert (ended - began).total_seconds() == pytest.approx(2.5, abs=0.5)
    assert {event["job"]["namespace"] for event in events} == {"shop"}
    (source,) = events[0]["inputs"]
    assert (source["namespace"], source["name"]) == ("file", str(data))
    assert source["facets"]["version"]["datasetVersion"] == "ab" * 32
    fields = source["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [("x", "number"), ("y", "category")]
    statistics = source["inputFacets"]["inputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (40, 241, 1)
    assert datasets(events[-1], "outputs") == {str(root.serving): "7"}
    time = events[0]["run"]["facets"]["nominalTime"]["nominalStartTime"]
    assert time == "2026-01-02T03:00:00Z"


@pytest.mark.parametrize("key", ["span-000000000000000007", "backfill-1..2-1-1", "now-20260102T030000Z"])
def test_a_scheduled_run_of_no_set_time_has_events(own, tmp_path, display, key):
    recorder = RunRecorder(Root(tmp_path / "root"), own.changed(scheduled_by=f"arrivals/{key}"), display)
    recorder.begin()
    recorder.end(RunOutcome("failed", reason="a"))
    events = read(recorder.root)
    assert summary(events) == [("data", "START"), ("data", "FAIL")]
    assert "nominalTime" not in events[0]["run"]["facets"]
    assert tags(events[-1])["scheduled_by"] == f"arrivals/{key}"


def test_data_in_several_files_are_their_folder_and_spans_the_folder_of_all(own):
    files = own.data_files
    for path, place in {
        "/d/rows.csv": "/d/rows.csv",
        "/d/rows": "/d/rows",
        "/d/day-*.csv": "/d",
        "/d/span-{SPAN}/v{VERSION}/*": "/d",
        "gs://bucket/d/rows.csv": "d/rows.csv",
    }.items():
        config = {**own.config, "data": {**own.config["data"], "path": path}}
        record = own.changed(config=config, data_files=files * 2)
        (source,) = Datasets(Root(Path("/r")), record, "shop").run_datasets[0]
        assert source.name == place
        assert source.namespace == ("gs://bucket" if path.startswith("gs") else "file")
        assert source.facets["version"].datasetVersion == own.data_fingerprint


RECORD = RunRecord(
    run_id="run", name="team", status="running", started="", config={}, data_fingerprint="", log=""
)


@pytest.mark.parametrize("names", [("a.csv",), ("a.csv", "b.csv")])
def test_an_example_gen_reads_a_folder_whose_version_is_the_content_of_its_files(team, names):
    folder = team.root.path.parent / "rows"
    folder.mkdir()
    hashes = {}
    for name in names:
        (folder / name).write_text(f"x\n{name}\n")
        hashes[name] = hashlib.sha256(f"x\n{name}\n".encode()).hexdigest()
    team.define("""
        def create_pipeline(folder):
            from components import CsvExampleGen

            return pipeline(CsvExampleGen(input_base=folder))
    """)
    (plan,) = team.plan(folder=str(folder)).steps
    step = FinishedStep(asdict(plan), {"examples": {}}, 1, "run", 1.0, team.root.artifacts / "a" / "b")
    (source,), (examples,) = Datasets(team.root, RECORD, "shop").step_datasets(step)
    assert (source.namespace, source.name) == ("file", str(folder))
    combined = hashlib.sha256(json.dumps(hashes).encode()).hexdigest()
    expected = hashes["a.csv"] if len(names) == 1 else combined
    assert source.facets["version"].datasetVersion == expected
    assert (examples.namespace, examples.name) == ("shop", "team.CsvExampleGen.examples")


def test_a_folder_of_the_root_that_no_step_made_is_a_file(team):
    plan = {"inputs": {"model": [{"folder": "kept/a/model", "type": "x"}]}, "parameters": {}}
    step = FinishedStep({"component": "A", "outputs": {}, **plan}, {}, 1, "run", 1.0, team.root.path)
    (model,), _ = Datasets(team.root, RECORD, "shop").step_datasets(step)
    assert (model.namespace, model.name) == ("file", str(team.root.path / "kept/a/model"))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.received.append((self.path, self.headers.get("Authorization")))
        event = json.loads(self.rfile.read(length))
        status = self.server.statuses.pop(0) if self.server.statuses else 201
        if status == 201:
            self.server.events.append(event)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    """A receiver of events, which answers with `statuses` and then with 201."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.received, server.events, server.statuses = [], [], []
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_address_gets_each_event(run_team, team, server, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "s3cr3t")
    record = run_team(f"lineage.openlineage={server.url}")
    assert server.received == [("/api/v1/lineage", "Bearer s3cr3t")] * 6
    for event in server.events:
        check_event(event)
    assert summary(server.events)[-1] == ("team", "COMPLETE")
    assert not record.notes
    assert not team.root.openlineage.exists()
    assert "s3cr3t" not in team.root.records.file(record.run_id).read_text()
    run_team(f"lineage.openlineage={server.url}/openapi/lineage")
    assert {path for path, _ in server.received[6:]} == {"/openapi/lineage"}  # a path is used as it is


@pytest.mark.parametrize(
    ("statuses", "asked", "lost", "note"),
    [
        pytest.param([201, 500], 7, (), None, id="is back at the end of the run"),  # the second event twice
        pytest.param([503] * 9, 2, range(6), "6 OpenLineage events did not reach", id="stays down"),
        pytest.param([201, 422], 6, (1,), "1 OpenLineage event did not reach", id="refuses an event"),
    ],
)
def test_a_receiver_that(run_team, server, shown, statuses, asked, lost, note):
    server.statuses += statuses
    record = run_team(f"lineage.openlineage={server.url}")
    assert (record.status, len(server.received)) == ("finished", asked)
    kept = [event for number, event in enumerate(OF_TWO_STEPS) if number not in lost]
    assert summary(server.events) == kept
    assert [text.partition(": ")[0] for text in record.notes] == ([f"{note} {server.url}"] if note else [])
    assert all(str(statuses[-1]) in text and f"! {text}" in shown.getvalue() for text in record.notes)


def test_a_closed_port_does_not_fail_the_run(run_team):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    record = run_team(f"lineage.openlineage=http://127.0.0.1:{port}")
    assert record.status == "finished"
    assert "6 OpenLineage events did not reach" in record.notes[0]
    assert "Connection refused" in record.notes[0]


def test_a_receiver_that_never_answers_is_waited_for_twice(run_team, monkeypatch):
    monkeypatch.setattr(openlineage_events, "_TIMEOUT_SECS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        record = run_team(f"lineage.openlineage=http://127.0.0.1:{listener.getsockname()[1]}")
        listener.setblocking(False)
        for _ in range(2):
            listener.accept()[0].close()
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert record.status == "finished"
    assert "Read timed out" in record.notes[0]


def test_an_error_in_making_an_event_does_not_fail_the_run(run_team, monkeypatch, caplog):
    monkeypatch.setattr(Datasets, "step_datasets", lambda *_: 1 / 0)
    assert run_team(TO_FILE).status == "finished"
    assert "an OpenLineage event could not be made" in caplog.text


def test_a_broken_file_of_the_client_does_not_fail_the_run(run_team, team, monkeypatch, tmp_path):
    file = tmp_path / "openlineage.yml"
    file.write_text("facets: 7")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(file))
    record = run_team(TO_FILE)
    assert record.status == "finished"
    assert record.notes == ("this run sends no OpenLineage events; see its log for the reason",)
    assert not team.root.openlineage.exists()
