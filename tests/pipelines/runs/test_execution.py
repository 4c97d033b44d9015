import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.types.standard_artifacts import (
    ExampleAnomalies,
    Examples,
    ExampleStatistics,
    HyperParameters,
    InfraBlessing,
    Model,
    ModelBlessing,
    ModelEvaluation,
    ModelRun,
    PushedModel,
    Schema,
    TransformCache,
    TransformGraph,
)

from components.evaluator.gate.verdict import Verdict
from components.pusher.provenance import Provenance
from pipelines.beam.runners import RUNNERS
from pipelines.errors import BadInputError, RunFailedError
from pipelines.root import Root
from pipelines.runs import execution as run_execution
from pipelines.runs.execution import execute
from pipelines.runs.plan.run_plan import RunRequest, plan_run
from pipelines.runs.recorder import RunRecorder, start_record
from pipelines.steps import running
from pipelines.steps.running import run_executor
from pipelines.terminal.progress import Progress
from tests.pushed_versions import write_version

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT bool_domain { } presence { min_count: 1 } }
"""


COMPONENTS = [
    "CsvExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "Transform",
    "Trainer",
    "Evaluator",
    "ServingCheck",
    "Pusher",
]


class Executors:
    """A stand-in for the executors of all components: each leaves what `leaves` has for the output's type."""

    def __init__(self):
        self.leaves = {}
        self.beam_options = None

    def __call__(self, component, executor, parameters, inputs, outputs, scratch, beam_options, run_id):
        self.beam_options = beam_options
        if component not in COMPONENTS:
            run_executor(component, executor, parameters, inputs, outputs, scratch, beam_options, run_id)
            return
        for (artifact,) in outputs.values():
            leaf = self.leaves[type(artifact)]
            if leaf.uri:
                shutil.copytree(leaf.uri, artifact.uri, dirs_exist_ok=True)
            uri = artifact.uri
            artifact.set_mlmd_artifact(copy.deepcopy(leaf.mlmd_artifact))
            artifact.uri = uri


@pytest.fixture
def executors(monkeypatch):
    stand_in = Executors()
    monkeypatch.setattr(running, "run_executor", lambda *args: stand_in(*args))
    return stand_in


@pytest.fixture
def leave(tmp_path, executors):
    """Returns a function that sets the outputs that the components leave."""

    def make(verdict, version, anomalies=0, breaking=0, num_eval_examples=5, labels=None):
        evaluation, pushed, found = ModelEvaluation(), PushedModel(), ExampleAnomalies()
        place = tmp_path / "leaves"
        shutil.rmtree(place, ignore_errors=True)
        evaluation.uri, found.uri = str(place / "evaluation"), str(place / "anomalies")
        Path(evaluation.uri).mkdir(parents=True)
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
        Path(found.uri, "Split-train").mkdir(parents=True)
        Path(found.uri, "Split-train", "SchemaDiff.pb").write_bytes(proto.SerializeToString())
        statistics = ExampleStatistics()
        statistics.uri = str(place / "statistics")
        statistics.split_names = '["train", "eval"]'
        for split, size in (("train", 5), ("eval", num_eval_examples)):
            sizes = statistics_pb2.DatasetFeatureStatisticsList()
            sizes.datasets.add(num_examples=size)
            folder = place / "statistics" / f"Split-{split}"
            folder.mkdir(parents=True)
            (folder / "FeatureStats.pb").write_bytes(sizes.SerializeToString())
        schema = Schema()
        schema.uri = str(place / "inferred")
        (place / "inferred").mkdir()
        (place / "inferred" / "schema.pbtxt").write_text(SCHEMA)
        examples = Examples()
        examples.uri = str(place / "examples")
        examples.split_names = '["train", "eval"]'
        for split, values in (labels or {"train": [0, 1], "eval": [1, 0]}).items():
            folder = place / "examples" / f"Split-{split}"
            folder.mkdir(parents=True)
            with tf.io.TFRecordWriter(str(folder / "rows.gz"), "GZIP") as writer:
                for value in values:
                    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
                    features = tf.train.Features(feature={"y": feature})
                    writer.write(tf.train.Example(features=features).SerializeToString())
        model_run = ModelRun()
        model_run.uri = str(place / "model_run")
        Path(model_run.uri).mkdir()
        asked = InfraBlessing()
        asked.uri = str(place / "serving_check")
        Path(asked.uri).mkdir()
        Path(asked.uri, "serving_check.json").write_text("{}")
        executors.leaves = {
            Examples: examples,
            InfraBlessing: asked,
            Model: Model(),
            ModelRun: model_run,
            ExampleStatistics: statistics,
            ModelEvaluation: evaluation,
            ModelBlessing: ModelBlessing(),
            HyperParameters: HyperParameters(),
            PushedModel: pushed,
            TransformCache: TransformCache(),
            TransformGraph: TransformGraph(),
            ExampleAnomalies: found,
            Schema: schema,
        }

    return make


@pytest.fixture
def run(data, tmp_path, display):
    """Returns a function that plans a run, and gives the function that executes it, and its recorder."""

    def execute_plan(*settings, **former):
        plan = plan_run(
            RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y", settings=settings), display
        )
        plan = replace(plan, **former)
        recorder = RunRecorder(Root(tmp_path / "root"), start_record(plan), display)
        return lambda: execute(plan, RUNNERS["local"], recorder, Progress(display)), recorder

    return execute_plan


PASSED = Verdict(
    blessed=True,
    metrics={"accuracy": 0.8, "auc_diff": 0.1, "auc": 0.9, "other_diff": 2.0},
    failures=[],
    baseline_metrics={"auc": 0.8},
    slices={"x:1": {"accuracy": 0.7, "auc": None}},
)


def test_a_pushed_model(leave, run, shown, monkeypatch):
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: 7.0))
    leave(PASSED, version="1234")
    start, recorder = run('evaluator.metrics=["auc", "recall"]')
    outcome = start()
    assert (outcome.status, outcome.version, outcome.reason) == ("pushed", "1234", None)
    # In the order of the configuration, without the differences of metrics that are there themselves.
    record = recorder.record
    assert list(record.metrics.items()) == [("auc", 0.9), ("accuracy", 0.8), ("other_diff", 2.0)]
    assert record.baseline_metrics == {"auc": 0.8}
    assert list(record.slices["x:1"].items()) == [("auc", None), ("accuracy", 0.7)]
    assert [part.name for part in record.components] == COMPONENTS
    assert {part.status for part in record.components} == {"finished"}
    assert "✓ Trainer  0.0 s  (no earlier run)" in shown.getvalue()
    assert list(record.graph) == COMPONENTS
    assert record.graph["Evaluator"] == ["CsvExampleGen", "SchemaGen", "Trainer"]


def test_only_the_push_is_not_reused(leave, run):
    leave(PASSED, version="1234")
    run()[0]()
    start, recorder = run()
    start()
    parts = {part.name: part.status for part in recorder.record.components}
    assert [name for name, status in parts.items() if status == "finished"] == ["Pusher"]
    assert recorder.record.components[-1].reason.startswith("each run decides on its push")


def push(root, run_id, version=5):
    model = root / "kept" / run_id / "model"
    model.mkdir(parents=True)
    write_version(Provenance(run_id, str(model)), str(root / "serving" / str(version)), str(root / "serving"))


def test_the_schema_of_the_first_pushed_run_is_the_roots(leave, executors, run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    leave(PASSED, version="5")
    start, recorder = run()
    run_id = recorder.record.run_id
    prepared = []

    def run_and_push(component, *others):
        executors(component, *others)
        if component == "Pusher":
            assert Root(root).schema.read() is None
            prepared.append((root / f".schema-{run_id}" / "schema.pbtxt").is_file())
            push(root, run_id)

    monkeypatch.setattr(running, "run_executor", run_and_push)
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
    start, _ = run()
    start()
    assert Root(tmp_path / "root").schema.read() is None
    assert sorted((tmp_path / "root").glob(".schema-*")) == []


def test_a_run_with_a_schema_of_the_users_leaves_none(leave, run, tmp_path):
    file = tmp_path / "mine.pbtxt"
    file.write_text(SCHEMA)
    leave(PASSED, version="5")
    start, recorder = run(f"schema.path={file}")
    push(tmp_path / "root", recorder.record.run_id)
    start()
    assert Root(tmp_path / "root").schema.read() is None


def test_a_model_that_is_not_blessed(leave, run):
    leave(Verdict(blessed=False, metrics={"auc": 0.5}, failures=["too low", "too old"]), None)
    start, _ = run()
    outcome = start()
    assert (outcome.status, outcome.version) == ("not_blessed", None)
    assert outcome.reason == "too low; too old"


@pytest.mark.parametrize("state", ["is already live", "was withdrawn"])
def test_a_model_that_is_unchanged(leave, executors, run, state):
    leave(PASSED, version=None)
    pushed = executors.leaves[PushedModel]
    pushed.set_string_custom_property("unchanged_version", "77")
    pushed.set_string_custom_property("not_pushed_reason", f"that of version 77, which {state}")
    start, _ = run()
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
    (tmp_path / "leaves/model_run/model_selection.json").write_text(json.dumps(models))
    start, recorder = run()
    start()
    assert recorder.record.models == tuple(models)
    assert (
        "model: wide_deep: auc 0.75 at step 30 (2.0 s) is better than "
        "linear: auc 0.75 at step 30 (2.0 s; dropped at step 40, because it was too far behind)"
    ) in recorder.record.notes


def test_the_checks_are_recorded_with_the_thresholds(leave, run):
    leave(replace(PASSED, not_checked=("the loss",), intervals={"auc": (0.85, 0.95)}), "1")
    start, recorder = run('evaluator.thresholds=[{metric = "auc", upper = 0.95}]')
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
    push(root, former.run_id, version=1000)
    start, recorder = run()
    start()
    assert "version 1000's auc was 0.95 and is 0.8" in recorder.record.notes[-1]


def test_anomalies_are_noted(leave, run):
    leave(PASSED, version="1", anomalies=2)
    start, recorder = run()
    assert start().status == "pushed"
    noted = [note for note in recorder.record.notes if note.startswith("anomaly")]
    assert len(noted) == 2
    assert noted[-1] == "anomaly: train split, column 'column 1': Odd."


def test_what_breaks_the_data_ends_the_run_unless_it_is_allowed(leave, run):
    leave(PASSED, version="1", anomalies=3, breaking=1)
    start, recorder = run()
    with pytest.raises(
        RunFailedError, match=r"\(1 anomaly; the first: train split, column 'column 2'"
    ) as error:
        start()
    assert error.value.is_bad_input
    assert "schema accept" in str(error.value)
    assert "example_validator.moving" not in str(error.value)  # nothing has moved
    assert sum(note.startswith("anomaly") for note in recorder.record.notes) == 3
    assert "Transform" not in [part.name for part in recorder.record.components]
    start, _ = run("example_validator.on_anomalies=warn")
    assert start().status == "pushed"


@pytest.mark.parametrize(("anomalies", "ends"), [(2, True), (0, False)])
def test_anomalies_end_the_run_before_others_run_where_that_is_asked_for(leave, run, anomalies, ends):
    leave(PASSED, version="1", anomalies=anomalies)
    start, recorder = run("example_validator.on_anomalies=fail")
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
    start, _ = run()
    start()
    assert [component for component, value in trains.items() if value] == ["Trainer"]


def train(root, run_id):
    """Leaves an unfinished training of a run; returns its folder."""
    folder = root / "artifacts/Trainer" / ("0" * 64) / "unfinished" / f"{run_id}-0a"
    folder.mkdir(parents=True)
    (folder / "step 70").touch()
    return folder


def trainings(root):
    return {path.name: path for path in (root / "artifacts/Trainer").glob("*/unfinished/*")}


FORMERS = {
    "resumed": lambda killed, older: ({"unfinished": killed}, killed),
    "continued": lambda killed, older: ({"continued": (killed,)}, killed),
    # Stopped before its Trainer began.
    "continued twice": lambda killed, older: ({"continued": (killed, older)}, older),
    "resumed and continued": lambda killed, older: ({"unfinished": killed, "continued": (older,)}, older),
}


@pytest.mark.parametrize("how", FORMERS)
def test_a_run_goes_on_with_an_unfinished_training(leave, run, killed, tmp_path, how):
    leave(PASSED, version="1")
    formers, trained = FORMERS[how](killed, killed.changed(run_id="20250101-000000"))
    folder = train(tmp_path / "root", trained.run_id)
    start, recorder = run(**formers)
    start()
    (left,) = trainings(tmp_path / "root").items()
    assert left[0] == f"{recorder.record.run_id}-handed-over"
    assert (left[1] / "step 70").exists()
    # In the folder of the step that goes on with it.
    assert left[1].parents[1].name == recorder.record.step("Trainer")
    assert not folder.exists()


@pytest.mark.parametrize("how", FORMERS)
def test_a_run_goes_on_with_a_finished_training(leave, run, killed, tmp_path, how):
    leave(PASSED, version="1")
    (tmp_path / "leaves/model_run/step 90").touch()
    start, recorder = run("trainer.train_steps=90")
    start()
    made = recorder.record
    formers, trained = FORMERS[how](killed, killed.changed(run_id="20250101-000000"))
    trained.__dict__.update(run_id=made.run_id, components=made.components)
    start, recorder = run("trainer.train_steps=91", **formers)
    start()
    left = trainings(tmp_path / "root")
    if how == "resumed":  # its Trainer has nothing left to do
        assert recorder.record.step("Trainer") == made.step("Trainer")
        assert left == {}
        return
    assert list(left) == [f"{recorder.record.run_id}-handed-over"]
    assert (left.popitem()[1] / "step 90").exists()
    output = tmp_path / "root/artifacts/Trainer" / made.step("Trainer") / "model_run/step 90"
    assert output.exists()


def test_a_training_that_is_not_resumed_is_lost_and_said_so(leave, run, killed, tmp_path):
    leave(PASSED, version="1")
    folder = train(tmp_path / "root", killed.run_id)
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-70"\n')
    start, recorder = run()
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
    leave, run, killed, monkeypatch, tmp_path, of_former, settings, is_kept
):
    leave(PASSED, version="1")
    fingerprints = run_execution.component_fingerprints

    def of_the_old_code(pipeline, *arguments, **others):
        parts = fingerprints(pipeline, *arguments, **others)
        for component in ("Transform", *of_former):
            parts[component]["code"] = of_former.get(component) or "of the old code"
        return parts

    with monkeypatch.context() as old:
        old.setattr(run_execution, "component_fingerprints", of_the_old_code)
        start, recorder = run()
        start()
    made = recorder.record
    if of_former == {"Transform": None}:
        shutil.rmtree(tmp_path / "root/artifacts/Transform")
    former = killed.changed(run_id="20250101-000000", components=made.components)
    start, recorder = run(continued=(former,), **settings)
    start()
    assert (recorder.record.step("Transform") == made.step("Transform")) is is_kept
    assert ("Transform has no output to keep" in "".join(recorder.record.notes)) is not is_kept
    assert recorder.record.step("Trainer") != made.step("Trainer")


def test_the_plan_of_the_generic_model_and_copied_data_are_noted(leave, run, data):
    leave(PASSED, version="1")
    data.write_text(data.read_text() + "7.5,\n")  # a row without a label
    start, recorder = run()
    start()
    assert recorder.record.notes[0].startswith("binary problem: 'y' with 2 classes from 1 numeric")
    assert recorder.record.notes[1].startswith("model: wide_deep")
    note = recorder.record.notes[2]
    assert note.startswith("CsvExampleGen reads a copy (")
    assert note.endswith("): 1 row without a value in 'y' is left out")


def test_a_split_without_rows_ends_the_run(leave, run):
    leave(PASSED, version="1", num_eval_examples=0)
    start, recorder = run()
    with pytest.raises(RunFailedError, match="the split 'eval' has no rows") as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("CsvExampleGen", True)
    assert recorder.record.components[-1].name == "StatisticsGen"


def test_a_cell_that_makes_a_column_text_is_noted(leave, run, data):
    leave(PASSED, version="1")
    data.write_text(data.read_text() + "oops,1\n")
    start, recorder = run()
    start()
    assert recorder.record.notes[0].startswith("column 'x': numbers as text; 1 of 41 cells")
    assert f"{data}, line 42: 'oops'" in recorder.record.notes[0]


APART = {"train": [0] * 300 + [1] * 100, "eval": [0] * 50 + [1] * 150}


def test_labels_that_differ_in_the_splits_end_the_run_before_others_run(leave, run):
    leave(PASSED, version="1", labels=APART)
    start, recorder = run()
    with pytest.raises(RunFailedError, match=r"75\.0% of the labels 'y' in train and 25\.0% in") as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("CsvExampleGen", True)
    assert 'split.on_label_difference = "warn"' in str(error.value)
    assert [part.name for part in recorder.record.components] == ["CsvExampleGen"]
    assert recorder.record.label_by_split["shares"]["eval"] == {"0": 0.25, "1": 0.75}


def test_labels_that_differ_are_noted_where_groups_or_times_may_honestly_do(leave, run):
    leave(PASSED, version="1", labels=APART)
    start, recorder = run("split.by=column", "split.column=x", "columns.x=number")
    assert start().status == "pushed"
    assert any(note.startswith("the splits differ in the label") for note in recorder.record.notes)


def test_labels_that_are_alike_are_recorded(leave, run):
    leave(PASSED, version="1")
    start, recorder = run()
    assert start().status == "pushed"
    assert recorder.record.label_by_split["sizes"] == {"train": 2, "eval": 2}
    assert not any("differ in the label" in note for note in recorder.record.notes)


def test_every_column_is_listed(leave, run, shown):
    leave(PASSED, version="1")
    start, recorder = run()
    start()
    assert [row["name"] for row in recorder.record.columns] == ["x", "y"]
    assert "  x       number  number" in shown.getvalue()


def test_beams_options_are_those_of_the_configuration(leave, executors, run):
    leave(PASSED, version="1234")
    start, _ = run("beam.args=['--experiments=one']")
    start()
    assert executors.beam_options == ("--experiments=one",)


EXTENSION = """
import pathlib

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model, ModelEvaluation


@component
def Card(model: InputArtifact[Model], card: OutputArtifact[ModelEvaluation], title: Parameter[str]):
    pathlib.Path(card.uri, "card").write_text(f"{title} of {pathlib.Path(model.uri).name}")


def extend(roles):
    card = Card(model=roles["trainer"].outputs["model"], title="TITLE")
    roles["pusher"].add_upstream_node(card)
    return [card]


def twice(roles):
    return [Card(model=roles["trainer"].outputs["model"], title="a").with_id("Trainer")]


def nothing(roles):
    return None
"""


def test_components_of_the_users_own_run_in_the_pipeline_from_a_csv(leave, run, tmp_path):
    leave(PASSED, version="1")
    file = tmp_path / "steps_of_ours.py"
    file.write_text(EXTENSION.replace("TITLE", "Card"))
    start, recorder = run(f"pipeline.extend={file}:extend")
    assert start().status == "pushed"
    names = [part.name for part in recorder.record.components]
    assert names.index("Trainer") < names.index("Card") < names.index("Pusher")
    assert recorder.record.graph["Card"] == ["Trainer"]
    step = recorder.record.step("Card")
    text = (tmp_path / "root/artifacts/Card" / step / "card/card").read_text()
    assert text == "Card of model"
    start, recorder = run(f"pipeline.extend={file}:extend")
    start()
    assert (recorder.record.step("Card"), recorder.record.components[-2].status) == (step, "cached")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("twice", "two components with the id 'Trainer'"),
        ("nothing", "must return a list of components. Received: None"),
        ("absent", "AttributeError: module .* has no attribute 'absent'"),
    ],
)
def test_an_extension_that_cannot_be_used_is_refused(leave, run, tmp_path, function, message):
    leave(PASSED, version="1")
    file = tmp_path / f"steps_with_{function}.py"  # a name is imported once
    file.write_text(EXTENSION)
    start, _ = run(f"pipeline.extend={file}:{function}")
    with pytest.raises(BadInputError, match=rf"pipeline\.extend = .*{message}"):
        start()


def test_what_a_run_without_a_cache_has_made_is_reused_afterwards(leave, run):
    leave(PASSED, version="1")
    start, older = run()
    start()
    start, newer = run(enable_cache=False)
    start()
    reasons = [part.reason for part in newer.record.components[:-1]]
    assert all(reason.startswith("the cache is not used") for reason in reasons)
    start, recorder = run("pusher.keep=4")
    start()
    steps = {part.name: part.step for part in recorder.record.components[:-1]}
    assert steps == {part.name: part.step for part in newer.record.components[:-1]}
    assert steps["Trainer"] != older.record.step("Trainer")


def stopping_in(component, executors):
    def run_or_stop(name, *others):
        if name == component:
            raise KeyboardInterrupt
        executors(name, *others)

    return run_or_stop


def test_a_resumed_run_is_judged_against_what_serves_now(leave, executors, run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    leave(PASSED, version="1")
    push(root, "20250101-000000", 1)
    with monkeypatch.context() as stopped:
        stopped.setattr(running, "run_executor", stopping_in("ServingCheck", executors))
        start, recorder = run()
        with pytest.raises(RunFailedError):
            start()
    record = recorder.record.changed(status="failed")
    start, recorder = run(unfinished=record)
    start()
    statuses = {part.name: part.status for part in recorder.record.components}
    assert (statuses["Evaluator"], statuses["ServingCheck"]) == ("cached", "finished")
    push(root, "20250102-000000", 2)
    start, recorder = run(unfinished=record)
    start()
    statuses = {part.name: part.status for part in recorder.record.components}
    assert (statuses["Trainer"], statuses["Evaluator"]) == ("cached", "finished")
    assert recorder.record.components[-3].reason == "another version is live"


def test_a_step_with_an_unreadable_file_is_unfinished_while_it_is_made_again(
    leave, executors, run, tmp_path, monkeypatch
):
    leave(PASSED, version="1")
    start, recorder = run()
    start()
    step = tmp_path / "root/artifacts/Trainer" / recorder.record.step("Trainer") / "step.json"
    step.write_text("{")  # such as of another version of this program
    with monkeypatch.context() as stopped:
        stopped.setattr(running, "run_executor", stopping_in("Trainer", executors))
        with pytest.raises(RunFailedError):
            run("pusher.keep=4")[0]()
    assert not step.exists()


def test_a_run_that_cannot_be_planned_leaves_a_training_alone(leave, run, killed, tmp_path):
    leave(PASSED, version="1")
    root = Root(tmp_path / "root")
    folder = train(root.path, killed.run_id)
    push(root.path, "20250101-000000")
    shutil.rmtree(root.kept)
    with pytest.raises(BadInputError, match="is live, but a new model cannot be compared"):
        run()[0]()
    assert folder.exists()
