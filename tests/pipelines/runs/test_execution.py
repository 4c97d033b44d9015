import json
from dataclasses import replace

import pytest
import tensorflow as tf
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.types.standard_artifacts import (
    ExampleAnomalies,
    Examples,
    ExampleStatistics,
    InfraBlessing,
    Model,
    ModelBlessing,
    ModelEvaluation,
    ModelRun,
    PushedModel,
    Schema,
)

from components.evaluator.gate.verdict import Verdict
from components.pusher.provenance import Provenance
from pipelines.cache.outcome import CacheOutcome
from pipelines.errors import RunFailedError
from pipelines.plan.run_plan import RunRequest, plan_run
from pipelines.root import Root
from pipelines.root.metadata import cleanup
from pipelines.root.metadata import store as metadata_store
from pipelines.root.metadata.place import MetadataPlace
from pipelines.beam.runners import Runner, component_launcher
from pipelines.runs import execution as run_execution
from pipelines.runs.execution import execute
from pipelines.runs.recorder import RunRecorder, start_record
from pipelines.terminal.progress import Progress
from tests.pushed_versions import write_version

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT bool_domain { } presence { min_count: 1 } }
"""


class FakeLauncher:
    """A stand-in for TFX that reports every component as run, with the outputs in `leaves`.

    Attributes:
      leaves: Output artifacts by type.
    """

    leaves = {}

    def __init__(self, pipeline, run_id, fingerprints, observer, checks, beam_options):
        self.components = pipeline.components
        self.run_id, self.fingerprints = run_id, fingerprints
        self._observer, self._checks = observer, checks
        self.beam_options = beam_options

    def run(self, component):
        self._observer.component_started(component)
        self._observer.component_finished(component, False, 1.5, CacheOutcome("first"))
        if component in self._checks:
            self._checks[component](
                {key: [self.artifact(channel)] for key, channel in component.outputs.items()}
            )

    def artifact(self, channel):
        return self.leaves[channel.type]


class AllAtOnce(Runner):
    def run(self, launcher):
        self.launcher = launcher
        for component in launcher.components:
            launcher.run(component)


@pytest.fixture
def leave(tmp_path, monkeypatch):
    """Returns a function that sets the outputs that the components leave."""

    def make(verdict, version, anomalies=0, breaking=0, num_eval_examples=5, labels=None):
        evaluation, pushed, found = ModelEvaluation(), PushedModel(), ExampleAnomalies()
        evaluation.uri, found.uri = str(tmp_path), str(tmp_path)
        verdict.write(evaluation.uri)
        pushed.set_int_custom_property("pushed", int(version is not None))
        if version is not None:
            pushed.set_string_custom_property("pushed_version", version)
        found.splits = ["train"]
        proto = anomalies_pb2.Anomalies()
        for number in range(anomalies):
            info = proto.anomaly_info[f"column {number}"]
            info.description = "Odd."
            is_breaking = number >= anomalies - breaking
            info.severity = info.ERROR if is_breaking else info.WARNING
        (tmp_path / "Split-train").mkdir()
        (tmp_path / "Split-train" / "SchemaDiff.pb").write_bytes(proto.SerializeToString())
        statistics = ExampleStatistics()
        statistics.uri = str(tmp_path / "statistics")
        statistics.split_names = '["train", "eval"]'
        for split, size in (("train", 5), ("eval", num_eval_examples)):
            sizes = statistics_pb2.DatasetFeatureStatisticsList()
            sizes.datasets.add(num_examples=size)
            folder = tmp_path / "statistics" / f"Split-{split}"
            folder.mkdir(parents=True)
            (folder / "FeatureStats.pb").write_bytes(sizes.SerializeToString())
        schema = Schema()
        schema.uri = str(tmp_path / "inferred")
        (tmp_path / "inferred").mkdir()
        (tmp_path / "inferred" / "schema.pbtxt").write_text(SCHEMA)
        examples = Examples()
        examples.uri = str(tmp_path / "examples")
        examples.split_names = '["train", "eval"]'
        for split, values in (labels or {"train": [0, 1], "eval": [1, 0]}).items():
            folder = tmp_path / "examples" / f"Split-{split}"
            folder.mkdir(parents=True)
            with tf.io.TFRecordWriter(str(folder / "rows.gz"), "GZIP") as writer:
                for value in values:
                    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
                    features = tf.train.Features(feature={"y": feature})
                    writer.write(tf.train.Example(features=features).SerializeToString())
        model_run = ModelRun()
        model_run.uri = str(tmp_path)
        asked = InfraBlessing()
        asked.uri = str(tmp_path)
        (tmp_path / "serving_check.json").write_text("{}")
        leaves = {
            Examples: examples,
            InfraBlessing: asked,
            Model: Model(),
            ModelRun: model_run,
            ExampleStatistics: statistics,
            ModelEvaluation: evaluation,
            ModelBlessing: ModelBlessing(),
            PushedModel: pushed,
            ExampleAnomalies: found,
            Schema: schema,
        }
        monkeypatch.setattr(FakeLauncher, "leaves", leaves)
        monkeypatch.setattr(component_launcher, "ComponentLauncher", FakeLauncher)

    return make


@pytest.fixture
def run(data, tmp_path, display):
    """Returns a function that executes a plan, and gives the outcome, the record and the runner."""

    def execute_plan(*settings, **former):
        plan = plan_run(
            RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y", settings=settings),
            display,
        )
        plan = replace(plan, **former)
        recorder = RunRecorder(Root(tmp_path / "root"), start_record(plan), display)
        runner = AllAtOnce()
        return lambda: execute(plan, runner, recorder, Progress(display)), recorder, runner

    return execute_plan


PASSED = Verdict(
    blessed=True,
    metrics={"accuracy": 0.8, "auc_diff": 0.1, "auc": 0.9, "other_diff": 2.0},
    failures=[],
    baseline_metrics={"auc": 0.8},
    slices={"x:1": {"accuracy": 0.7, "auc": None}},
)


def test_a_pushed_model(leave, run, shown):
    leave(PASSED, version="1234")
    start, recorder, runner = run('evaluator.metrics=["auc", "recall"]')
    outcome = start()
    assert (outcome.status, outcome.version, outcome.reason) == ("pushed", "1234", None)
    # In the order of the configuration, without the differences of metrics that are there themselves.
    record = recorder.record
    assert list(record.metrics.items()) == [("auc", 0.9), ("accuracy", 0.8), ("other_diff", 2.0)]
    assert record.baseline_metrics == {"auc": 0.8}
    assert list(record.slices["x:1"].items()) == [("auc", None), ("accuracy", 0.7)]
    ran = [(part.name, part.status, part.elapsed_secs) for part in recorder.record.components]
    assert ran == [(part.id, "finished", 1.5) for part in runner.launcher.components]
    assert "✓ Trainer  1.5 s" in shown.getvalue()
    assert runner.launcher.run_id == recorder.record.run_id
    assert runner.launcher.beam_options == ()
    fingerprints = runner.launcher.fingerprints
    assert set(fingerprints) == set(runner.launcher.components)
    # That of the Pusher holds the run's id: no run takes another one's push from the cache.
    assert [part.id for part, text in fingerprints.items() if recorder.record.run_id in text] == [
        "Pusher"
    ]


def push(root, run_id, version=5):
    write_version(
        Provenance(run_id, "m"), str(root / "serving" / str(version)), str(root / "serving")
    )


def test_the_schema_of_the_first_pushed_run_is_the_roots(leave, run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    leave(PASSED, version="5")
    start, recorder, _ = run()
    run_id = recorder.record.run_id
    run_component, prepared = FakeLauncher.run, []

    def run_and_push(launcher, component):
        run_component(launcher, component)
        if component.id == "Pusher":
            assert Root(root).schema.read() is None
            prepared.append((root / f".schema-{run_id}" / "schema.pbtxt").is_file())
            push(root, run_id)

    monkeypatch.setattr(FakeLauncher, "run", run_and_push)
    start()
    assert prepared == [True]  # before the push
    found = Root(root).schema.read()
    assert (found.origin.run_id, found.types) == (run_id, {"x": "FLOAT", "y": "INT"})
    assert found.origin.kinds == {"x": "number", "y": "number"}
    (label,) = (item for item in found.schema.feature if item.name == "y")
    assert (label.int_domain.min, label.int_domain.max) == (0, 1)
    assert sorted(root.glob(".schema-*")) == []


def test_a_run_that_pushes_nothing_leaves_no_schema(leave, run, tmp_path):
    leave(PASSED, version=None)
    start, _, _ = run()
    start()
    assert Root(tmp_path / "root").schema.read() is None
    assert sorted((tmp_path / "root").glob(".schema-*")) == []


def test_a_run_with_a_schema_of_the_users_leaves_none(leave, run, tmp_path):
    file = tmp_path / "mine.pbtxt"
    file.write_text(SCHEMA)
    leave(PASSED, version="5")
    start, recorder, _ = run(f"schema.path={file}")
    push(tmp_path / "root", recorder.record.run_id)
    start()
    assert Root(tmp_path / "root").schema.read() is None


def test_a_model_that_is_not_blessed(leave, run):
    leave(Verdict(blessed=False, metrics={"auc": 0.5}, failures=["too low", "too old"]), None)
    start, _, _ = run()
    outcome = start()
    assert (outcome.status, outcome.version) == ("not_blessed", None)
    assert outcome.reason == "too low; too old"


@pytest.mark.parametrize("state", ["serves already", "was withdrawn"])
def test_a_model_that_is_unchanged(leave, run, state):
    leave(PASSED, version=None)
    pushed = FakeLauncher.leaves[PushedModel]
    pushed.set_string_custom_property("unchanged_version", "77")
    pushed.set_string_custom_property("not_pushed_reason", f"that of version 77, which {state}")
    start, _, _ = run()
    outcome = start()
    assert (outcome.status, outcome.version) == ("unchanged", None)
    assert f"version 77, which {state}" in outcome.reason


def test_the_models_that_were_compared_are_recorded(leave, run, data, tmp_path):
    leave(PASSED, version="1")
    # Enough rows to hold some out for the comparison of models.
    data.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(250)))
    fields = {
        "metrics": {"auc": 0.75},
        "step": 30,
        "steps_per_tree": 0,
        "seconds": 2.0,
        "failure": "",
        "is_paused": False,
    }
    dropped = {"is_chosen": False, "is_dropped": True, "last_step": 40, "expected": 0.45}
    chosen = {"is_chosen": True, "is_dropped": False, "last_step": 90, "expected": None}
    models = [
        {"model": "linear", "loss": 0.5, **fields, **dropped},
        {"model": "wide_deep", "loss": 0.25, **fields, **chosen},
    ]
    (tmp_path / "model_selection.json").write_text(json.dumps(models))
    start, recorder, _ = run()
    start()
    assert recorder.record.models == tuple(models)
    assert (
        "model: wide_deep: auc 0.75 at step 30 (2.0 s) is better than "
        "linear: auc 0.75 at step 30 (2.0 s; dropped at step 40, as it was too far behind)"
    ) in recorder.record.notes


def test_the_checks_are_recorded_with_the_thresholds(leave, run):
    leave(replace(PASSED, not_checked=("the loss",), intervals={"auc": (0.85, 0.95)}), "1")
    start, recorder, _ = run('evaluator.thresholds=[{metric = "auc", upper = 0.95}]')
    start()
    (check,) = recorder.record.checks
    assert (check["metric"], check["against"], check["passed"]) == ("auc", "upper", True)
    assert (check["value"], check["bound"], check["low"]) == (0.9, 0.95, 0.85)
    assert recorder.record.not_checked == ("the loss",)
    assert recorder.record.thresholds[0]["upper"] == 0.95


def test_a_baseline_that_is_worse_than_when_it_was_pushed_is_noted(leave, run, killed, tmp_path):
    leave(replace(PASSED, baseline_intervals={"auc": (0.75, 0.85)}), "1")
    root = tmp_path / "root"
    former = killed.changed(
        run_id="20250101-000000",
        status="pushed",
        version="1000",
        metrics={"auc": 0.95},
        intervals={"auc": (0.93, 0.97)},
    )
    Root(root).records.write(former)
    write_version(Provenance(former.run_id, "m"), str(root / "serving/1000"), str(root / "serving"))
    start, recorder, _ = run()
    start()
    assert "of version 1000, auc was 0.95 and is 0.8" in recorder.record.notes[-1]


def test_anomalies_are_noted(leave, run):
    leave(PASSED, version="1", anomalies=2)
    start, recorder, _ = run()
    assert start().status == "pushed"
    noted = [note for note in recorder.record.notes if note.startswith("anomaly")]
    assert len(noted) == 2
    assert noted[-1] == "anomaly: train split, column 'column 1': Odd."


def test_what_breaks_the_data_ends_the_run_unless_it_is_allowed(leave, run):
    leave(PASSED, version="1", anomalies=3, breaking=1)
    start, recorder, _ = run()
    with pytest.raises(
        RunFailedError, match=r"\(1 anomaly; the first: train split, column 'column 2'"
    ) as error:
        start()
    assert error.value.is_bad_input
    assert "schema accept" in str(error.value)
    assert "example_validator.moving" not in str(error.value)  # nothing has moved
    assert sum(note.startswith("anomaly") for note in recorder.record.notes) == 3
    assert "Transform" not in [part.name for part in recorder.record.components]
    start, _, _ = run("example_validator.on_anomalies=warn")
    assert start().status == "pushed"


@pytest.mark.parametrize(("anomalies", "ends"), [(2, True), (0, False)])
def test_anomalies_end_the_run_before_others_run_where_that_is_asked_for(
    leave, run, anomalies, ends
):
    leave(PASSED, version="1", anomalies=anomalies)
    start, recorder, _ = run("example_validator.on_anomalies=fail")
    if not ends:
        assert start().status == "pushed"
        return
    with pytest.raises(RunFailedError, match=r"\(2 anomalies; the first: train split") as error:
        start()
    assert error.value.component == "ExampleValidator"
    assert recorder.record.components[-1].name == "ExampleValidator"
    assert "Trainer" not in [part.name for part in recorder.record.components]


def test_the_trainer_alone_may_continue_from_a_checkpoint(leave, run, monkeypatch):
    leave(PASSED, version="1")
    trains = {}
    monkeypatch.setattr(
        run_execution.Progress,
        "component_started",
        lambda self, component, trains_now=False, **kwargs: trains.__setitem__(
            component, kwargs.get("trains", trains_now)
        ),
    )
    start, _, _ = run()
    start()
    assert [component for component, value in trains.items() if value] == ["Trainer"]


@pytest.fixture
def metadata(monkeypatch, tmp_path):
    """A stand-in for ML Metadata: the Trainer's output and the fingerprints of former runs, by run id."""
    (tmp_path / "root/metadata").mkdir(parents=True)
    Root(tmp_path / "root").metadata.sqlite_file.touch()
    monkeypatch.setattr(MetadataPlace, "open", lambda self, settings=None: None)
    said = {"outputs": {}, "fingerprints": {}}
    for name, function in {
        "relocate_artifacts": lambda *arguments: 0,
        "cancel_killed_executions": lambda *arguments: [],
        "output_of": lambda store, run_id, *arguments: said["outputs"].get(run_id),
        "fingerprints_of": lambda store, run_id: said["fingerprints"].get(run_id, {}),
    }.items():
        monkeypatch.setattr(metadata_store, name, function)
        if hasattr(cleanup, name):
            monkeypatch.setattr(cleanup, name, function)
    return said


def train(root, run_id, kind):
    """Leaves a training of a run; returns its folder."""
    model_runs = root / "artifacts/Trainer/model_run"
    folder = (
        model_runs / "unfinished" / f"{run_id}-0a" if kind == "unfinished" else model_runs / "7"
    )
    folder.mkdir(parents=True)
    (folder / kind).touch()
    return folder


@pytest.mark.parametrize("kind", ["unfinished", "finished"])
@pytest.mark.parametrize(
    "how", ["resumed", "continued", "continued twice", "resumed and continued"]
)
def test_a_run_goes_on_with_a_training(leave, run, killed, metadata, tmp_path, how, kind):
    leave(PASSED, version="1")
    older = killed.changed(run_id="20250101-000000")
    formers, trained = {
        "resumed": ({"unfinished": killed}, killed),
        "continued": ({"continued": (killed,)}, killed),
        "continued twice": (
            {"continued": (killed, older)},
            older,
        ),  # stopped before its Trainer began
        "resumed and continued": ({"unfinished": killed, "continued": (older,)}, older),
    }[how]
    folder = train(tmp_path / "root", trained.run_id, kind)
    metadata["outputs"] = {trained.run_id: folder} if kind == "finished" else {}
    start, recorder, _ = run(**formers)
    start()
    run_id = recorder.record.run_id
    trainings = tmp_path / "root/artifacts/Trainer/model_run/unfinished"
    left = [path.name for path in trainings.iterdir()] if trainings.exists() else []
    is_its_own_output = (how, kind) == ("resumed", "finished")
    assert left == ([] if is_its_own_output else [f"{run_id}-handed-over"])
    assert folder.exists() is (kind == "finished")
    if left:
        assert (trainings / left[0] / kind).exists()


def test_a_training_that_is_not_resumed_is_lost_and_said_so(leave, run, killed, tmp_path):
    leave(PASSED, version="1")
    folder = train(tmp_path / "root", killed.run_id, "unfinished")
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-70"\n')
    start, recorder, _ = run()
    start()
    assert not folder.exists()
    lost = f"the training of run {killed.run_id}, at step 70, was not resumed: removed"
    assert lost in recorder.record.notes


@pytest.mark.parametrize(
    ("of_former", "settings", "is_kept"),
    [
        ({}, {}, True),
        ({"SchemaGen": "of another schema"}, {}, False),
        ({"CsvExampleGen": "of other code of components"}, {}, False),
        ({"Transform": None}, {}, False),
        ({}, {"enable_cache": False}, False),
    ],
    ids=[
        "same",
        "another schema",
        "another version of CsvExampleGen",
        "Transform did not finish",
        "no cache",
    ],
)
def test_what_transform_made_is_kept_if_it_can_be(
    leave, run, killed, metadata, of_former, settings, is_kept
):
    leave(PASSED, version="1")
    start, _, runner = run()
    start()
    fingerprints = {part.id: value for part, value in runner.launcher.fingerprints.items()}
    types = {part.id: part.type for part in runner.launcher.components}
    made = {**fingerprints, "Transform": "of the old code", **of_former}
    metadata["fingerprints"][killed.run_id] = {
        types[name]: value for name, value in made.items() if value is not None
    }
    start, recorder, runner = run(continued=(killed,), **settings)
    start()
    now = {part.id: value for part, value in runner.launcher.fingerprints.items()}
    assert (now["Transform"] == "of the old code") is is_kept
    assert ("Transform has nothing" in "".join(recorder.record.notes)) is not is_kept
    assert now["Trainer"] == f"{fingerprints['Trainer']}|run={recorder.record.run_id}"


def test_the_plan_of_the_generic_model_and_copied_data_are_noted(leave, run, data):
    leave(PASSED, version="1")
    data.write_text(data.read_text() + "7.5,\n")  # a row without a label
    start, recorder, _ = run()
    start()
    assert recorder.record.notes[0].startswith("binary problem: 'y' with 2 classes from 1 numeric")
    assert recorder.record.notes[1].startswith("model: wide_deep")
    note = recorder.record.notes[2]
    assert note.startswith("CsvExampleGen reads a copy (")
    assert note.endswith("): 1 row without a value in 'y' is left out")


def test_a_split_without_rows_ends_the_run(leave, run):
    leave(PASSED, version="1", num_eval_examples=0)
    start, recorder, _ = run()
    with pytest.raises(RunFailedError, match="no row fell into the split 'eval'") as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("CsvExampleGen", True)
    assert recorder.record.components[-1].name == "StatisticsGen"


def test_a_cell_that_makes_a_column_text_is_noted(leave, run, data):
    leave(PASSED, version="1")
    data.write_text(data.read_text() + "oops,1\n")
    start, recorder, _ = run()
    start()
    assert recorder.record.notes[0].startswith("column 'x': numbers as text; 1 of 41 cells")
    assert f"{data}, line 42: 'oops'" in recorder.record.notes[0]


APART = {"train": [0] * 300 + [1] * 100, "eval": [0] * 50 + [1] * 150}


def test_labels_that_differ_in_the_splits_end_the_run_before_others_run(leave, run):
    leave(PASSED, version="1", labels=APART)
    start, recorder, _ = run()
    with pytest.raises(
        RunFailedError, match=r"75\.0% of the labels 'y' in train and 25\.0% in"
    ) as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("CsvExampleGen", True)
    assert 'split.on_label_difference = "warn"' in str(error.value)
    assert [part.name for part in recorder.record.components] == ["CsvExampleGen"]
    assert recorder.record.label_by_split["shares"]["eval"] == {"0": 0.25, "1": 0.75}


def test_labels_that_differ_are_noted_where_groups_or_times_may_honestly_do(leave, run):
    leave(PASSED, version="1", labels=APART)
    start, recorder, _ = run("split.by=column", "split.column=x", "columns.x=number")
    assert start().status == "pushed"
    assert any(note.startswith("the splits differ in the label") for note in recorder.record.notes)


def test_labels_that_are_alike_are_recorded(leave, run):
    leave(PASSED, version="1")
    start, recorder, _ = run()
    assert start().status == "pushed"
    assert recorder.record.label_by_split["sizes"] == {"train": 2, "eval": 2}
    assert not any("differ in the label" in note for note in recorder.record.notes)


def test_every_column_is_listed(leave, run, shown):
    leave(PASSED, version="1")
    start, recorder, _ = run()
    start()
    assert [row["name"] for row in recorder.record.columns] == ["x", "y"]
    assert "  x       number  number" in shown.getvalue()


def test_beams_options_are_those_of_the_configuration(leave, run):
    leave(PASSED, version="1234")
    start, _, runner = run("beam.args=['--experiments=one']")
    start()
    assert runner.launcher.beam_options == ("--experiments=one",)
