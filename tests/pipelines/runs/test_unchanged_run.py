import hashlib
import json
import shutil

import pytest

from pipelines.config.load import load_config
from pipelines.root import Root
from pipelines.root.records import ComponentRecord, Decision, HeldModel, RunRecord
from pipelines.root.schema.root_schema import SchemaOrigin
from pipelines.runs.definitions import fingerprints
from pipelines.runs.plan.inputs import RunRequest, read_inputs
from pipelines.runs.run import record_unchanged
from pipelines.runs.unchanged_run import find_unchanged, run_identity, unchanged_record
from pipelines.terminal.progress import Progress
from tests.pipelines.runs.conftest import NoCapture

CHECKS = tuple({"against": against} for against in ("trivial", "baseline", "baseline when pushed", "lower"))


class Module:
    """A project: a module, a CSV, and the root of a run that has pushed version 5."""

    def __init__(self, folder, data):
        self.root, self.file, self.data = Root(folder / "root"), folder / "code" / "taxi.py", data
        self.file.parent.mkdir()
        self.write_code("1.5")
        self.serve(5)
        self.former = RunRecord(
            run_id="20260101-000000", name="data", status="pushed", started="2026-01-01T00:00:00+00:00",
            config=self.config().model_dump(mode="json"), data_fingerprint="f", log=str(self.root.log("a")),
            version="5", metrics={"auc": 0.75}, checks=CHECKS, baseline_version="4",
            baseline_metrics={"auc": 0.5}, components=(ComponentRecord("Trainer", "finished", 3.5),),
            identity=run_identity(self.config(), "f", (), "", ""),
        )  # fmt: skip
        self.root.records.write(self.former)

    def write_code(self, constant):
        self.file.write_text(f"def preprocessing_fn(inputs):\n    return inputs['x'] * {constant}\n")

    def serve(self, version):
        extra = self.root.serving / str(version) / "assets.extra"
        extra.mkdir(parents=True)
        (extra.parent / "saved_model.pb").touch()
        (extra / "push.json").write_text(json.dumps({"pipeline_run_id": "20260101-000000", "model": "../m"}))

    def keep_schema(self, run_id, text='feature { name: "x" type: INT }', accepted_for=None):
        self.root.schema.file.parent.mkdir(exist_ok=True)
        self.root.schema.file.write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        origin = SchemaOrigin(run_id, "", digest, accepted_for=accepted_for)
        self.root.schema.file.with_name("origin.json").write_text(json.dumps(vars(origin)))

    def config(self, *settings):
        return load_config(data=str(self.data), label="y", settings=(f"module.file={self.file}", *settings))

    def find(self, *settings, data="f", spans=()):
        schema = self.root.schema.read()
        return find_unchanged(self.root, self.config(*settings), data, spans, schema)


@pytest.fixture
def module(tmp_path, data):
    return Module(tmp_path, data)


def test_the_former_run_is_repeated_unless_anything_has_changed(module, monkeypatch):
    assert module.find() == (module.former, module.former.identity)
    assert module.find("beam.args=['--a=1']", "retention.runs=7") == (module.former, module.former.identity)
    assert module.find(data="g") is None
    assert module.find(spans=({"span": 3},)) is None
    assert module.find("trainer.train_steps=7") is None
    assert module.find("pusher.keep=7") is None
    module.write_code("1.50001")
    assert module.find() is None
    module.write_code("1.5  # the same")
    assert module.find() is not None
    monkeypatch.setattr(fingerprints.metadata, "version", lambda library: "9.9")
    assert module.find() is None


def test_it_is_the_version_that_serves_that_counts(module):
    module.serve(6)
    assert module.find() is None
    other = {"run_id": "20260102-000000", "version": None, "serving_version": "6"}
    module.root.records.write(module.former.changed(status="not_blessed", **other))
    record, _ = module.find()
    assert record.status == "not_blessed"
    again = unchanged_record(module.root, "20260103-000000", record, "i")
    assert (again.status, again.checks, again.baseline_version) == ("not_blessed", CHECKS, "4")


@pytest.mark.parametrize(
    ("origin", "text", "accepted_for", "is_unchanged"),
    [
        pytest.param("20260101-000000", None, None, True, id="its own"),
        pytest.param("20251231-000000", None, None, False, id="of another run"),
        pytest.param("20260101-000000", "edited", None, False, id="edited"),
        pytest.param("20260101-000000", None, "5", False, id="accepted"),
    ],
)
def test_the_schema_is_the_one_that_the_run_itself_has_left(module, origin, text, accepted_for, is_unchanged):
    module.keep_schema(origin, accepted_for=accepted_for)
    if text:
        module.root.schema.file.write_text('feature { name: "y" type: INT }')
    assert (module.find() is not None) is is_unchanged


def test_a_model_that_was_not_blessed_is_not_judged_again_while_nothing_serves(module):
    shutil.rmtree(module.root.serving)
    assert module.find() is None  # the version it has pushed was removed
    former = module.former.changed(status="not_blessed", version=None, reason="too bad")
    module.root.records.write(former)
    assert module.find() == (former, former.identity)
    again = unchanged_record(module.root, "20260103-000000", former, former.identity)
    assert (again.status, again.reason, again.serving_version) == ("not_blessed", "too bad", None)


def test_a_run_that_failed_or_has_no_settled_push_tells_nothing(module):
    module.root.records.write(module.former.changed(status="failed"))
    assert module.find() is None
    module.root.records.write(module.former.changed(reason="killed after its push"))
    assert module.find() is None


def test_its_record_is_that_of_the_former_run_held_against_itself(module):
    record = unchanged_record(module.root, "20260102-000000", module.former, "i")
    assert (record.status, record.version, record.serving_version) == ("unchanged", None, "5")
    assert (record.baseline_version, record.baseline_metrics) == ("5", {"auc": 0.75})
    assert [check["against"] for check in record.checks] == ["trivial", "lower"]
    assert record.components == (
        ComponentRecord("Trainer", "cached", 0.0, "same data, code and settings as run 20260101-000000"),
    )
    once_more = unchanged_record(module.root, "20260103-000000", record, "i")
    assert (record.same_as, once_more.same_as) == ("20260101-000000", "20260101-000000")


@pytest.fixture
def record_again(module, display):
    """Returns a function that records a run with settings, for which nothing has changed."""

    def record(*settings, capture=None):
        config = module.config(*settings)
        inputs = read_inputs(RunRequest(root=module.root, config=config), display)
        assert record_unchanged(inputs, Progress(display), NoCapture()) is None  # other data
        identity = run_identity(config, inputs.data.profile.fingerprint, (), "", "")
        module.root.records.write(module.former.changed(identity=identity, checks=(), attempt=3))
        return record_unchanged(inputs, Progress(display), capture or NoCapture())

    return record


def test_it_is_recorded_with_a_report_and_its_lines(module, record_again, shown):
    capture = NoCapture()
    record = record_again(capture=capture)
    assert module.root.records.read(record.run_id) == record
    assert str(capture.log) == record.log
    assert record.report.endswith(f"{record.run_id}.html")
    said = "= Trainer  unchanged, reused: same data, code and settings as run 20260101-000000"
    assert said in shown.getvalue()


def test_it_sends_the_events_of_a_run_whose_components_all_come_from_the_cache(module, record_again):
    record = record_again("lineage.openlineage=file")  # which the former run did not have
    assert record.attempt == 1
    events = [json.loads(line) for line in module.root.openlineage.read_text().splitlines()]
    assert [(event["job"]["name"], event["eventType"]) for event in events] == [
        ("data", "START"), ("data.Trainer", "START"), ("data.Trainer", "COMPLETE"), ("data", "COMPLETE"),
    ]  # fmt: skip


def test_it_records_the_settings_of_its_own_run_that_do_not_affect_the_result(module, record_again):
    record = record_again("retention.runs=7", "beam.direct.workers=2")  # `prune` reads the newest record
    assert module.former.section("retention").get("runs") is None
    assert record.section("retention")["runs"] == 7
    assert record.section("beam")["direct"]["workers"] == 2


def hold(module, decision):
    """Records a later run with other settings, whose model was held, and perhaps decided."""
    identity = run_identity(module.config("trainer.train_steps=7"), "f", (), "", "")
    fields = {"status": "held", "version": None, "serving_version": "5", "identity": identity}
    held = HeldModel("m", "m/s")
    module.root.records.write(
        module.former.changed(
            run_id="20260102-000000",
            **fields,
            reason="a doubt",
            doubts=("a doubt",),
            held=held,
            decision=decision,
        )
    )


@pytest.mark.parametrize("kind", [None, "rejected"])
def test_a_run_that_repeats_a_held_one_leads_to_its_decision(module, kind):
    hold(module, kind and Decision(kind, "ann", "2026-01-02T00:00:00+00:00", "wrong labels"))
    record, identity = module.find("trainer.train_steps=7")
    again = unchanged_record(module.root, "20260103-000000", record, identity)
    assert (again.held, again.decision, again.same_as) == (None, None, "20260102-000000")
    assert not again.awaits_decision
    if kind == "rejected":
        assert again.status == "not_blessed"
        assert again.reason.endswith("run 20260102-000000, rejected by ann: wrong labels")
    else:
        assert again.status == "held"
        assert "waits for `approve 20260102-000000`: a doubt" in again.reason


def test_a_held_model_that_was_superseded_is_judged_anew(module):
    hold(module, Decision("superseded", "20260103-000000", "2026-01-03T00:00:00+00:00"))
    assert module.find("trainer.train_steps=7") is None


def test_a_run_that_repeats_an_approved_one_has_no_decision_of_its_own(module):
    decision = Decision("approved", "ann", "2026-01-02T00:00:00+00:00", "it is right")
    held = {"doubts": ("a doubt",), "held": HeldModel("m", "m/s")}
    module.root.records.write(module.former.changed(**held, decision=decision))
    again = unchanged_record(module.root, "20260103-000000", *module.find())
    assert (again.status, again.held, again.decision, again.doubts) == ("unchanged", None, None, ())
