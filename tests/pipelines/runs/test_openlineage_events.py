"""The events of real runs: they keep OpenLineage's rules, and say what was read, written and pushed."""

import hashlib
import json
import logging
import threading
import uuid
from collections import Counter
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import attr
import pytest
from openlineage.client import event_v2, facet_v2

from pipelines.config.tfx_pipeline import load_tfx_pipeline_config
from pipelines.root import Root
from pipelines.root.records import ComponentRecord, RunOutcome
from pipelines.runs.recorder import RunRecorder, record_killed_runs
from pipelines.runs.tfx_pipeline import TfxPipelineRequest, run_tfx_pipeline
from pipelines.terminal.progress import Progress
from tests.pipelines.runs.test_run import NoCapture
from tests.pipelines.steps.conftest import Team
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
"""Classes that OpenLineage generates from the JSON schema of each facet."""


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)


@pytest.fixture
def run(team, display):
    """Returns a function that runs the team's pipeline, with events."""

    def run_it(*settings, arguments=(), **request):
        config = load_tfx_pipeline_config(
            None, str(team.file), dict(arguments), {}, settings or ("lineage.openlineage=file",)
        )
        return run_tfx_pipeline(
            TfxPipelineRequest(team.root, config, **request), Progress(display), NoCapture()
        )

    return run_it


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
    """Returns the events of a root; each has what the JSON schema asks for, and nothing that it does not know."""
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
    return {
        data["name"]: data["facets"].get("version", {}).get("datasetVersion")
        for data in event[kind]
    }


def tags(event):
    return {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}


def last(events, job):
    return [event for event in events if event["job"]["name"] == job][-1]


def test_a_run_and_its_steps_start_and_complete(run, team):
    record = run()
    events = read(team.root)
    assert summary(events) == [
        ("team", "START"),
        ("team.Write", "START"),
        ("team.Write", "COMPLETE"),
        ("team.Copy", "START"),
        ("team.Copy", "COMPLETE"),
        ("team", "COMPLETE"),
    ]
    assert {event["job"]["namespace"] for event in events} == {"team"}
    write, copy = (component.step for component in record.components)
    assert datasets(last(events, "team.Write"), "outputs") == {"team.Write.examples": write}
    assert datasets(last(events, "team.Copy"), "inputs") == {"team.Write.examples": write}
    assert datasets(last(events, "team.Copy"), "outputs") == {"team.Copy.model": copy}
    parents = {
        event["run"]["facets"]["parent"]["run"]["runId"]
        for event in events
        if event["job"]["name"] != "team"
    }
    assert parents == {events[0]["run"]["runId"]}
    assert tags(events[-1])["run_id"] == record.run_id
    assert tags(events[-1])["status"] == "finished"


def test_a_run_without_the_section_has_no_events(run, team):
    record = run("retention.runs=9")
    assert record.status == "finished"
    assert not team.root.openlineage.exists()


def test_a_resumed_run_is_another_run_of_the_same_job(run, team):
    failed = run(arguments={"times": "-1"})
    resumed = run(resume=True)
    assert (failed.attempt, resumed.attempt) == (1, 2)
    events = read(team.root)
    ends = [event for event in events if event["eventType"] not in ("START", "RUNNING")]
    assert summary(ends) == [
        ("team.Write", "COMPLETE"),
        ("team.Copy", "FAIL"),
        ("team", "FAIL"),
        ("team.Write", "COMPLETE"),
        ("team.Copy", "COMPLETE"),
        ("team", "COMPLETE"),
    ]
    for event in ends[1:3]:
        assert "times is negative" in event["run"]["facets"]["errorMessage"]["message"]
    assert tags(ends[3])["status"] == "cached"
    assert datasets(ends[3], "outputs") == datasets(ends[0], "outputs")
    assert {tags(event)["run_id"] for event in events} == {failed.run_id}


def test_a_signal_aborts_the_run_and_its_step(run, team, handles_signals):
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
    run()
    assert summary(read(team.root))[2:] == [("team.Stop", "ABORT"), ("team", "ABORT")]


def test_what_is_read_from_outside_and_what_is_pushed_are_datasets(run, team, tmp_path):
    data = tmp_path / "data" / "rows.csv"
    data.parent.mkdir()
    data.write_text("x\n1\n")
    team.define(PUSHING)
    record = run(arguments={"folder": str(team.root.serving)})
    events = read(team.root)
    served = {str(team.root.serving): record.version}
    assert served.items() <= datasets(last(events, "team.Pusher"), "outputs").items()
    assert datasets(events[-1], "outputs") == served
    team.define("""
        def create_pipeline(place):
            rows = Importer(source_uri=place, artifact_type=Examples).with_id("Rows")
            return pipeline(rows, Copy(examples=rows.outputs["result"]))
    """)


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
        ("data", "START"),
        ("data.Trainer", "START"),
        ("data.Trainer", "COMPLETE"),
        ("data", "COMPLETE"),
    ]
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
