import json

import pytest

from components.pusher.provenance import Provenance, read_provenance
from pipelines.cli.runs_table import runs_json, runs_table
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import held_ids
from pipelines.root.lineage import find_lineage, lineage_lines
from pipelines.root.records import HeldModel
from pipelines.runs import approval, recorder
from pipelines.terminal.progress import PlainDisplay
from tests.pushed_versions import serve_version

FIRST, HELD, LATER = "20260101-000001", "20260101-000002", "20260101-000003"
DOUBT = "the meaning of the new data has changed"


class HeldRoot:
    """A root that serves version 1000, and holds the model of a later run."""

    def __init__(self, path, record):
        self.root = Root(path)
        self.warnings = []
        self.add(FIRST, record, status="pushed", version="1000")
        serve_version(self.root.serving, 1000, FIRST)
        self.model = path / "artifacts" / "Trainer" / "model" / "7"
        (self.model / "Format-Serving").mkdir(parents=True)
        (self.model / "Format-Serving" / "saved_model.pb").write_text("the held one")
        (self.model / "warmup").write_text("requests")
        folder = "artifacts/Trainer/model/7"
        held = HeldModel(folder, f"{folder}/Format-Serving", f"{folder}/warmup", "f")
        self.add(
            HELD, record, status="held", reason=DOUBT, doubts=(DOUBT,), held=held,
            baseline_version="1000", serving_version="1000",
        )  # fmt: skip

    def add(self, run_id, record, **changes):
        self.root.records.write(record.changed(run_id=run_id, **changes))

    def push(self, run_id, version, record):
        """Adds a run that has pushed, as RunRecorder records it."""
        serve_version(self.root.serving, version, run_id)
        started = record.changed(run_id=run_id, status="running")
        made = recorder.RunRecorder(self.root, started, PlainDisplay(open("/dev/null", "w")))  # noqa: SIM115
        made.end(recorder.RunOutcome("pushed", version=str(version)))

    def approve(self, run_id=HELD, because="a new price list", **options):
        return approval.approve(self.root, run_id, because, "ann", self.warnings.append, **options)

    def reject(self, run_id=HELD, because="labels were shifted"):
        return approval.reject(self.root, run_id, because, "ann", self.warnings.append)

    def read(self, run_id=HELD):
        return self.root.records.read(run_id)

    def shown(self):
        table = runs_table(self.root, self.root.records.read_all())
        return dict(zip(table.columns[0].cells, table.columns[2].cells, strict=True))


@pytest.fixture
def held(killed, tmp_path):
    (tmp_path / "root" / "runs" / f"{killed.run_id}.json").unlink()
    return HeldRoot(tmp_path / "root", killed)


def test_an_approved_model_is_pushed_as_it_is_and_serves(held):
    assert held_ids(held.root) == [HELD]
    record = held.approve()
    version = held.root.serving / record.version
    assert (version / "saved_model.pb").read_text() == "the held one"
    warmup = version / "assets.extra" / "tf_serving_warmup_requests"
    assert warmup.read_text() == "requests"
    origin = read_provenance(str(held.root.serving), int(record.version))
    assert origin == Provenance(HELD, str(held.model), "f")
    assert held.root.versions.serving() == record.version
    assert (record.status, record.reason, record.serving_version) == ("pushed", None, record.version)
    assert record == held.read()
    assert (record.decision.kind, record.decision.by) == ("approved", "ann")
    assert record.decision.because == "a new price list"
    assert record.doubts == (DOUBT,)
    assert held.shown()[HELD] == "approved"
    (line,) = (one for one in runs_json(held.root, [record]))
    assert (line["status"], line["decision"]["because"]) == ("pushed", "a new price list")
    assert (held.warnings, held_ids(held.root)) == ([], [])
    lines = lineage_lines(find_lineage(held.root, record.version)[0])
    assert f"  doubt      {DOUBT}" in lines
    assert "  decision   approved by ann: a new price list" in lines


def test_a_second_approval_is_refused_and_pushes_nothing(held):
    version = held.approve().version
    with pytest.raises(BadInputError, match=f"approved by ann: a new price list, as version {version}"):
        held.approve()
    assert held.root.versions.served() == [1000, int(version)]


def test_an_approval_that_was_killed_after_its_push_is_completed_and_pushes_nothing_twice(held):
    version = held.approve(because="the first reason").version
    record = held.read()
    half = record.changed(status="held", version=None, reason=DOUBT)  # as it was before the push
    held.root.records.write(half)
    with pytest.raises(BadInputError, match="but its push was interrupted"):
        held.reject()
    again = held.approve(because="another reason")
    assert (again.version, again.decision.because) == (version, "the first reason")
    assert held.root.versions.served() == [1000, int(version)]
    assert held.warnings == []


def test_a_rejected_model_is_never_pushed(held):
    record = held.reject()
    assert (record.status, record.decision.kind) == ("held", "rejected")
    assert held.shown()[HELD] == "rejected"
    assert held.root.versions.served() == [1000]
    for decide in (held.approve, held.reject):
        with pytest.raises(BadInputError, match="was rejected by ann: labels were shifted, at "):
            decide()


def test_a_newer_run_that_pushes_supersedes_a_held_model_and_says_so(held, killed):
    held.push(LATER, 2000, killed)
    assert f"the held model of run {HELD} is superseded by the model of this run" in held.read(LATER).notes
    assert held.shown()[HELD] == "superseded"
    with pytest.raises(BadInputError, match=f"superseded by run {LATER}, which has pushed"):
        held.approve()
    assert held.root.versions.served() == [1000, 2000]


def test_a_newer_push_that_was_killed_before_it_recorded_this_supersedes_it_too(held, killed):
    held.add(LATER, killed, status="pushed", version="2000")
    with pytest.raises(BadInputError, match=f"run {LATER} has pushed version 2000 since"):
        held.approve()
    assert held.read().decision.kind == "superseded"


def test_newer_runs_are_those_with_higher_numbers(held, killed):
    held.root.records.write(held.read().changed(number=2))  # made with the clock ahead
    held.push("20260101-000000", 3000, killed.changed(number=3))
    assert held.read().decision.by == "20260101-000000"


def test_newer_runs_without_a_push_leave_it_held(held, killed):
    held.add(LATER, killed, status="not_blessed", reason="too bad")
    assert held.approve().version
    assert held.warnings == []


def test_another_served_version_than_the_one_it_was_compared_with_is_a_warning(held):
    (held.root.path / "withdrawn").mkdir()
    (held.root.serving / "1000").rename(held.root.path / "withdrawn" / "1000")
    record = held.approve()
    assert int(record.version) > 1000
    assert held.warnings == ["the model was compared with version 1000, and no version is live now"]


def test_a_run_that_repeated_the_held_one_leads_to_it(held, killed):
    held.add(LATER, killed, status="held", same_as=HELD, reason="the model is that of run ...")
    record = held.approve(LATER)
    assert record.run_id == HELD
    assert held.shown() == {FIRST: "pushed", HELD: "approved", LATER: "approved"}


def test_a_run_without_a_held_model_is_refused(held, killed, tmp_path):
    held.add(LATER, killed, status="failed", reason="no disk")
    for run_id, why in (
        ("20250101-000000", "there is no such run in "),
        (FIRST, "its status is 'pushed'"),
        (LATER, "its status is 'failed'"),
    ):
        with pytest.raises(BadInputError, match=f"Run {run_id} has no held model: {why}") as caught:
            held.approve(run_id)
        assert f"Held: {HELD}." in str(caught.value)
    pruned = {
        "run_id": "20250101-000000", "name": "", "status": "held", "started": "2025-01-01T00:00:00+00:00",
        "finished": None, "version": None, "spans": [],
    }  # fmt: skip
    (held.root.runs / "pruned.jsonl").write_text(json.dumps(pruned) + "\n")
    with pytest.raises(BadInputError, match=r"its record was removed by \[retention\]"):
        held.approve("20250101-000000")
    with pytest.raises(BadInputError, match="--because is empty"):
        held.approve(because="  ")
    (held.model / "warmup").unlink()
    with pytest.raises(BadInputError, match=r"warmup does not exist\. Restore it"):
        held.approve()
    assert held.read().decision is None
    assert held.root.versions.served() == [1000]


def test_nothing_is_decided_while_a_run_works_in_the_root(held):
    with held.root.lock.exclusively("run x"), pytest.raises(BadInputError, match="run x"):
        held.approve()


def test_a_newer_run_that_was_killed_after_its_push_counts(held, killed):
    serve_version(held.root.serving, 2000, LATER)
    held.add(LATER, killed, status="running")
    with pytest.raises(BadInputError, match=f"run {LATER} has pushed version 2000 since"):
        held.approve()
    assert held.root.versions.served() == [1000, 2000]


def test_an_approval_that_was_killed_after_its_push_is_not_superseded(held, killed):
    version = held.approve().version
    held.root.records.write(held.read().changed(status="held", version=None, reason=DOUBT))
    held.push(LATER, int(version) + 1, killed)
    record = held.read()
    assert (record.status, record.version, record.reason) == ("pushed", version, None)
    assert record.decision.kind == "approved"


def test_an_approval_adds_the_version_to_the_openlineage_run(held):
    config = {**held.read().config, "lineage": {"openlineage": "file"}}
    held.root.records.write(held.read().changed(config=config))
    record = held.approve()
    (event,) = map(json.loads, held.root.openlineage.read_text().splitlines())
    assert (event["eventType"], event["job"]["name"]) == ("OTHER", record.name)
    (output,) = event["outputs"]
    assert output["name"] == str(held.root.serving)
    assert output["facets"]["version"]["datasetVersion"] == record.version
    assert not held.warnings
