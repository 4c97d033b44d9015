import copy
import json
import shutil
from dataclasses import replace
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
from pipelines.beam.runners import RUNNERS
from pipelines.errors import BadInputError, RunFailedError
from pipelines.runs import execution as run_execution
from pipelines.runs.execution import execute
from pipelines.runs.recorder import RunRecorder, start_record
from pipelines.steps import running
from pipelines.steps.running import run_executor
from pipelines.terminal.progress import Progress
from tests.pushed_versions import serve_version

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_count: 1 } }
feature { name: "y" type: INT bool_domain { } presence { min_count: 1 } }
"""


COMPONENTS = [
    "CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform", "Trainer",
    "Evaluator", "ServingCheck", "Pusher",
]  # fmt: skip
PASSED = Verdict(
    blessed=True,
    metrics={"accuracy": 0.8, "auc_diff": 0.1, "auc": 0.9, "other_diff": 2.0},
    failures=[],
    baseline_metrics={"auc": 0.8},
    slices={"x:1": {"accuracy": 0.7, "auc": None}},
)


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


def write_anomalies(folder, anomalies, breaking):
    proto = anomalies_pb2.Anomalies()
    for number in range(anomalies):
        info = proto.anomaly_info[f"column {number}"]
        info.description = "Odd."
        info.severity = info.ERROR if number >= anomalies - breaking else info.WARNING
    (folder / "Split-train").mkdir()
    (folder / "Split-train" / "SchemaDiff.pb").write_bytes(proto.SerializeToString())


def write_statistics(folder, num_examples):
    for split, size in num_examples.items():
        sizes = statistics_pb2.DatasetFeatureStatisticsList()
        sizes.datasets.add(num_examples=size)
        (folder / f"Split-{split}").mkdir()
        (folder / f"Split-{split}" / "FeatureStats.pb").write_bytes(sizes.SerializeToString())


def write_examples(folder, labels):
    for split, values in labels.items():
        (folder / f"Split-{split}").mkdir()
        with tf.io.TFRecordWriter(str(folder / f"Split-{split}" / "rows.gz"), "GZIP") as writer:
            for value in values:
                feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
                features = tf.train.Features(feature={"y": feature})
                writer.write(tf.train.Example(features=features).SerializeToString())


@pytest.fixture
def leave(tmp_path, executors):
    """Returns a function that sets the outputs that the components leave, and has set them once."""

    def make(verdict=PASSED, version="1", anomalies=0, breaking=0, num_eval_examples=5, labels=None):
        place = tmp_path / "leaves"
        shutil.rmtree(place, ignore_errors=True)
        types = (
            Examples, InfraBlessing, Model, ModelRun, ExampleStatistics, ModelEvaluation, ModelBlessing,
            HyperParameters, PushedModel, TransformCache, TransformGraph, ExampleAnomalies, Schema,
        )  # fmt: skip
        executors.leaves = leaves = {kind: kind() for kind in types}

        def folder(kind, name):
            (place / name).mkdir(parents=True)
            leaves[kind].uri = str(place / name)
            return place / name

        verdict.write(str(folder(ModelEvaluation, "evaluation")))
        write_anomalies(folder(ExampleAnomalies, "anomalies"), anomalies, breaking)
        write_statistics(folder(ExampleStatistics, "statistics"), {"train": 5, "eval": num_eval_examples})
        (folder(Schema, "inferred") / "schema.pbtxt").write_text(SCHEMA)
        write_examples(folder(Examples, "examples"), labels or {"train": [0, 1], "eval": [1, 0]})
        folder(ModelRun, "model_run")
        (folder(InfraBlessing, "serving_check") / "serving_check.json").write_text("{}")
        leaves[ExampleAnomalies].splits = ["train"]
        for kind in (ExampleStatistics, Examples):
            leaves[kind].split_names = '["train", "eval"]'
        leaves[PushedModel].set_int_custom_property("pushed", int(version is not None))
        if version is not None:
            leaves[PushedModel].set_string_custom_property("pushed_version", version)

    make()
    return make


@pytest.fixture
def run(plan, root, display, leave):
    """Returns a function that plans a run, and gives the function that executes it, and its recorder."""

    def execute_plan(*settings, **former):
        planned = replace(plan(*settings), **former)
        recorder = RunRecorder(root, start_record(planned), display)
        return lambda: execute(planned, RUNNERS["local"], recorder, Progress(display)), recorder

    return execute_plan


@pytest.fixture
def execute_run(run):
    """Returns a function that executes a run; it returns the outcome and the record."""

    def execute_planned(*settings, **former):
        start, recorder = run(*settings, **former)
        return start(), recorder.record

    return execute_planned


def test_a_pushed_model(leave, execute_run, shown, monkeypatch):
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: 7.0))
    leave(PASSED, version="1234")
    outcome, record = execute_run('evaluator.metrics=["auc", "recall"]')
    assert (outcome.status, outcome.version, outcome.reason) == ("pushed", "1234", None)
    # In the order of the configuration, without the differences of metrics that are there themselves.
    assert list(record.metrics.items()) == [("auc", 0.9), ("accuracy", 0.8), ("other_diff", 2.0)]
    assert record.baseline_metrics == {"auc": 0.8}
    assert list(record.slices["x:1"].items()) == [("auc", None), ("accuracy", 0.7)]
    assert [part.name for part in record.components] == COMPONENTS
    assert {part.status for part in record.components} == {"finished"}
    assert "✓ Trainer  0.0 s  (no earlier run)" in shown.getvalue()
    assert list(record.graph) == COMPONENTS
    assert record.graph["Evaluator"] == ["CsvExampleGen", "SchemaGen", "Trainer"]


def test_only_the_push_is_not_reused(execute_run):
    execute_run()
    _, record = execute_run()
    assert [part.name for part in record.components if part.status == "finished"] == ["Pusher"]
    assert record.components[-1].reason.startswith("each run decides on its push")


def push(root, run_id, version=5):
    (root.kept / run_id / "model").mkdir(parents=True)
    serve_version(root.serving, version, run_id, str(root.kept / run_id / "model"))


@pytest.mark.parametrize("has_own_schema", [False, True])
def test_a_run_that_pushes_nothing_or_has_a_schema_of_the_users_leaves_none(
    leave, run, root, tmp_path, has_own_schema
):
    file = tmp_path / "mine.pbtxt"
    file.write_text(SCHEMA)
    leave(version="5" if has_own_schema else None)
    start, recorder = run(*([f"schema.path={file}"] if has_own_schema else []))
    if has_own_schema:
        push(root, recorder.record.run_id)
    start()
    assert root.schema.read() is None
    assert sorted(root.path.glob(".schema-*")) == []


def test_a_model_that_is_not_blessed(leave, execute_run):
    leave(Verdict(blessed=False, metrics={"auc": 0.5}, failures=["too low", "too old"]), None)
    outcome, _ = execute_run()
    assert (outcome.status, outcome.version, outcome.reason) == ("not_blessed", None, "too low; too old")


@pytest.mark.parametrize("state", ["is already live", "was withdrawn"])
def test_a_model_that_is_unchanged(leave, executors, execute_run, state):
    leave(version=None)
    pushed = executors.leaves[PushedModel]
    pushed.set_string_custom_property("unchanged_version", "77")
    pushed.set_string_custom_property("not_pushed_reason", f"that of version 77, which {state}")
    outcome, _ = execute_run()
    assert (outcome.status, outcome.version) == ("unchanged", None)
    assert f"version 77, which {state}" in outcome.reason


def test_a_baseline_that_is_worse_than_when_it_was_pushed_is_noted(leave, execute_run, killed, root):
    leave(replace(PASSED, baseline_intervals={"auc": (0.75, 0.85)}))
    scores = {"metrics": {"auc": 0.95}, "intervals": {"auc": (0.93, 0.97)}}
    root.records.write(killed.changed(run_id="20250101-000000", status="pushed", version="1000", **scores))
    push(root, "20250101-000000", version=1000)
    _, record = execute_run()
    assert "version 1000's auc was 0.95 and is 0.8" in record.notes[-1]


def test_the_schema_of_the_first_pushed_run_is_the_roots(executors, run, root, monkeypatch):
    start, recorder = run()
    run_id = recorder.record.run_id
    prepared = []

    def run_and_push(component, *others):
        executors(component, *others)
        if component == "Pusher":
            assert root.schema.read() is None
            prepared.append((root.path / f".schema-{run_id}" / "schema.pbtxt").is_file())
            push(root, run_id)

    monkeypatch.setattr(running, "run_executor", run_and_push)
    start()
    assert prepared == [True]  # before the push
    kept = root.schema.read()
    assert (kept.origin.run_id, kept.types) == (run_id, {"x": "FLOAT", "y": "INT"})
    assert kept.origin.kinds == {"x": "number", "y": "number"}
    (label,) = (item for item in kept.schema.feature if item.name == "y")
    assert (label.int_domain.min, label.int_domain.max) == (0, 1)
    assert sorted(root.path.glob(".schema-*")) == []


def test_the_models_that_were_compared_are_recorded(execute_run, data, tmp_path):
    # Enough rows to hold some out for the comparison of models.
    data.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(250)))
    fields = {
        "metrics": {"auc": 0.75}, "step": 30, "steps_per_tree": 0, "seconds": 2.0, "failure": "",
        "is_paused": False, "folds": 1, "contribution": None,
    }  # fmt: skip
    dropped = {"is_chosen": False, "is_dropped": True, "last_step": 40, "expected": 0.45, "weight": 0.0}
    chosen = {"is_chosen": True, "is_dropped": False, "last_step": 90, "expected": None, "weight": 1.0}
    models = [
        {"model": "linear", "loss": 0.5, **fields, **dropped},
        {"model": "wide_deep", "loss": 0.25, **fields, **chosen},
    ]
    (tmp_path / "leaves/model_run/model_selection.json").write_text(json.dumps(models))
    _, record = execute_run()
    assert record.models == tuple(models)
    assert (
        "model: wide_deep, with a loss of 0.25, chosen from "
        "linear: auc 0.75 at step 30 (2.0 s; dropped at step 40, because it was too far behind); "
        "wide_deep: auc 0.75 at step 30 (2.0 s)"
    ) in record.notes


def test_the_checks_are_recorded_with_the_thresholds(leave, execute_run):
    leave(replace(PASSED, not_checked=("the loss",), intervals={"auc": (0.85, 0.95)}))
    _, record = execute_run('evaluator.thresholds=[{metric = "auc", upper = 0.95}]')
    (check,) = record.checks
    assert (check["metric"], check["against"], check["passed"]) == ("auc", "upper", True)
    assert (check["value"], check["bound"], check["low"]) == (0.9, 0.95, 0.85)
    assert record.not_checked == ("the loss",)
    assert record.thresholds[0]["upper"] == 0.95


FAIL, WARN = (f"example_validator.on_anomalies={what}" for what in ("fail", "warn"))


@pytest.mark.parametrize(
    ("anomalies", "breaking", "settings"), [(2, 0, ()), (0, 0, (FAIL,)), (3, 1, (WARN,))]
)
def test_anomalies_are_noted(leave, execute_run, anomalies, breaking, settings):
    leave(anomalies=anomalies, breaking=breaking)
    outcome, record = execute_run(*settings)
    assert outcome.status == "pushed"
    notes = [note for note in record.notes if note.startswith("anomaly")]
    assert notes == [f"anomaly: train split, column 'column {number}': Odd." for number in range(anomalies)]


@pytest.mark.parametrize(
    ("anomalies", "breaking", "settings", "message"),
    [
        (3, 1, (), r"\(1 anomaly; the first: train split, column 'column 2'"),  # what breaks the data
        (2, 0, (FAIL,), r"\(2 anomalies; the first: train split"),
    ],
)
def test_anomalies_end_the_run_before_others_run(leave, run, anomalies, breaking, settings, message):
    leave(anomalies=anomalies, breaking=breaking)
    start, recorder = run(*settings)
    with pytest.raises(RunFailedError, match=message) as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("ExampleValidator", True)
    assert "schema accept" in str(error.value)
    assert "example_validator.moving" not in str(error.value)  # nothing has moved
    assert sum(note.startswith("anomaly") for note in recorder.record.notes) == anomalies
    assert recorder.record.components[-1].name == "ExampleValidator"
    assert not {"Transform", "Trainer"} & {part.name for part in recorder.record.components}


def test_the_trainer_alone_may_continue_from_a_checkpoint(execute_run, monkeypatch):
    began = {}

    def started(self, component, trains=False):
        began[component] = trains

    monkeypatch.setattr(run_execution.Progress, "component_started", started)
    execute_run()
    assert [component for component, trains in began.items() if trains] == ["Trainer"]


def train(root, run_id):
    """Leaves an unfinished training of a run; returns its folder."""
    folder = root.artifacts / "Trainer" / ("0" * 64) / "unfinished" / f"{run_id}-0a"
    folder.mkdir(parents=True)
    (folder / "step 70").touch()
    return folder


def trainings(root):
    return {path.name: path for path in root.artifacts.glob("Trainer/*/unfinished/*")}


FORMERS = {
    "resumed": lambda killed, older: ({"unfinished": killed}, killed),
    "continued": lambda killed, older: ({"continued": (killed,)}, killed),
    # Stopped before its Trainer began.
    "continued twice": lambda killed, older: ({"continued": (killed, older)}, older),
    "resumed and continued": lambda killed, older: ({"unfinished": killed, "continued": (older,)}, older),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", FORMERS)
def test_a_run_goes_on_with_an_unfinished_training(execute_run, killed, root, how):
    formers, trained = FORMERS[how](killed, killed.changed(run_id="20250101-000000"))
    folder = train(root, trained.run_id)
    _, record = execute_run(**formers)
    ((name, left),) = trainings(root).items()
    assert name == f"{record.run_id}-handed-over"
    assert (left / "step 70").exists()
    assert left.parents[1].name == record.step("Trainer")  # the folder of the step that continues it
    assert not folder.exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", FORMERS)
def test_a_run_goes_on_with_a_finished_training(execute_run, killed, root, tmp_path, how):
    (tmp_path / "leaves/model_run/step 90").touch()
    _, made = execute_run("trainer.train_steps=90")
    formers, trained = FORMERS[how](killed, killed.changed(run_id="20250101-000000"))
    trained.__dict__.update(run_id=made.run_id, components=made.components)
    _, record = execute_run("trainer.train_steps=91", **formers)
    left = trainings(root)
    if how == "resumed":  # its Trainer has nothing left to do
        assert record.step("Trainer") == made.step("Trainer")
        assert left == {}
        return
    assert list(left) == [f"{record.run_id}-handed-over"]
    assert (left.popitem()[1] / "step 90").exists()
    assert (root.artifacts / "Trainer" / made.step("Trainer") / "model_run/step 90").exists()


def test_a_training_that_is_not_resumed_is_lost_and_said_so(execute_run, killed, root):
    folder = train(root, killed.run_id)
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-70"\n')
    _, record = execute_run()
    assert not folder.exists()
    lost = f"the training of run {killed.run_id}, at step 70, was not resumed: removed"
    assert lost in record.notes


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("of_former", "settings", "is_kept"),
    [
        pytest.param({}, {}, True, id="same"),
        pytest.param({"SchemaGen": "of another schema"}, {}, False, id="another schema"),
        pytest.param({"CsvExampleGen": "of other code"}, {}, False, id="another version of CsvExampleGen"),
        pytest.param({"Transform": None}, {}, False, id="Transform did not finish"),
        pytest.param({}, {"enable_cache": False}, False, id="no cache"),
    ],
)
def test_what_transform_made_is_kept_if_it_can_be(
    execute_run, killed, monkeypatch, root, of_former, settings, is_kept
):
    fingerprints = run_execution.component_fingerprints

    def of_the_old_code(pipeline, *arguments, **others):
        parts = fingerprints(pipeline, *arguments, **others)
        for component in ("Transform", *of_former):
            parts[component]["code"] = of_former.get(component) or "of the old code"
        return parts

    with monkeypatch.context() as old:
        old.setattr(run_execution, "component_fingerprints", of_the_old_code)
        _, made = execute_run()
    if of_former == {"Transform": None}:
        shutil.rmtree(root.artifacts / "Transform")
    former = killed.changed(run_id="20250101-000000", components=made.components)
    _, record = execute_run(continued=(former,), **settings)
    assert (record.step("Transform") == made.step("Transform")) is is_kept
    assert ("Transform has no output to keep" in "".join(record.notes)) is not is_kept
    assert record.step("Trainer") != made.step("Trainer")


def test_the_plan_of_the_generic_model_and_copied_data_are_noted(execute_run, data):
    data.write_text(data.read_text() + "7.5,\n")  # a row without a label
    _, record = execute_run()
    assert record.notes[0].startswith("binary problem: 'y' with 2 classes from 1 numeric")
    assert record.notes[1].startswith("model: wide_deep")
    assert record.notes[2].startswith("positive class: '1', 50 % of the rows")
    note = record.notes[3]
    assert note.startswith("CsvExampleGen reads a copy (")
    assert note.endswith("): 1 row without a value in 'y' is left out")


def test_a_split_without_rows_ends_the_run(leave, run):
    leave(num_eval_examples=0)
    start, recorder = run()
    with pytest.raises(RunFailedError, match="the split 'eval' has no rows") as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("CsvExampleGen", True)
    assert recorder.record.components[-1].name == "StatisticsGen"


def test_a_cell_that_makes_a_column_text_is_noted(execute_run, data):
    data.write_text(data.read_text() + "oops,1\n")
    _, record = execute_run()
    assert record.notes[3].startswith("column 'x': numbers as text; 1 of 41 cells")
    assert f"{data}, line 42: 'oops'" in record.notes[3]


APART = {"train": [0] * 300 + [1] * 100, "eval": [0] * 50 + [1] * 150}


def test_labels_that_differ_in_the_splits_end_the_run_before_others_run(leave, run):
    leave(labels=APART)
    start, recorder = run()
    with pytest.raises(RunFailedError, match=r"75\.0% of the labels 'y' in train and 25\.0% in") as error:
        start()
    assert (error.value.component, error.value.is_bad_input) == ("CsvExampleGen", True)
    assert 'split.on_label_difference = "warn"' in str(error.value)
    assert [part.name for part in recorder.record.components] == ["CsvExampleGen"]
    assert recorder.record.label_by_split["shares"]["eval"] == {"0": 0.25, "1": 0.75}


def test_labels_that_differ_are_noted_where_groups_or_times_may_honestly_do(leave, execute_run):
    leave(labels=APART)
    outcome, record = execute_run("split.by=column", "split.column=x", "columns.x=number")
    assert outcome.status == "pushed"
    assert any(note.startswith("the splits differ in the label") for note in record.notes)


def test_labels_that_are_alike_and_columns_are_recorded_and_beam_has_its_options(
    executors, execute_run, shown
):
    outcome, record = execute_run("beam.args=['--experiments=one']")
    assert outcome.status == "pushed"
    assert record.label_by_split["sizes"] == {"train": 2, "eval": 2}
    assert not any("differ in the label" in note for note in record.notes)
    assert [row["name"] for row in record.columns] == ["x", "y"]
    assert "  x       number  number" in shown.getvalue()
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


def test_components_of_the_users_own_run_in_the_pipeline_from_a_csv(execute_run, root, tmp_path):
    file = tmp_path / "steps_of_ours.py"
    file.write_text(EXTENSION.replace("TITLE", "Card"))
    outcome, record = execute_run(f"pipeline.extend={file}:extend")
    assert outcome.status == "pushed"
    names = [part.name for part in record.components]
    assert names.index("Trainer") < names.index("Card") < names.index("Pusher")
    assert record.graph["Card"] == ["Trainer"]
    step = record.step("Card")
    assert (root.artifacts / "Card" / step / "card/card").read_text() == "Card of model"
    _, record = execute_run(f"pipeline.extend={file}:extend")
    assert (record.step("Card"), record.components[-2].status) == (step, "cached")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("twice", "two components with the id 'Trainer'"),
        ("nothing", "must return a list of components. Received: None"),
        ("absent", "AttributeError: module .* has no attribute 'absent'"),
    ],
)
def test_an_extension_that_cannot_be_used_is_refused(run, tmp_path, function, message):
    file = tmp_path / f"steps_with_{function}.py"  # a name is imported once
    file.write_text(EXTENSION)
    start, _ = run(f"pipeline.extend={file}:{function}")
    with pytest.raises(BadInputError, match=rf"pipeline\.extend = .*{message}"):
        start()


def test_what_a_run_without_a_cache_has_made_is_reused_afterwards(execute_run):
    (_, older), (_, newer) = execute_run(), execute_run(enable_cache=False)
    assert all(part.reason.startswith("the cache is not used") for part in newer.components[:-1])
    _, record = execute_run("pusher.keep=4")
    steps = {part.name: part.step for part in record.components[:-1]}
    assert steps == {part.name: part.step for part in newer.components[:-1]}
    assert steps["Trainer"] != older.step("Trainer")


@pytest.fixture
def stop_in(executors, run, monkeypatch):
    """Returns a function that runs until a component, in which it is stopped; it returns the record."""

    def stop(component, *settings):
        def run_or_stop(name, *others):
            if name == component:
                raise KeyboardInterrupt
            executors(name, *others)

        start, recorder = run(*settings)
        with monkeypatch.context() as stopped, pytest.raises(RunFailedError):  # noqa: PT012
            stopped.setattr(running, "run_executor", run_or_stop)
            start()
        return recorder.record

    return stop


def test_a_resumed_run_is_judged_against_what_serves_now(stop_in, execute_run, root):
    push(root, "20250101-000000", 1)
    unfinished = stop_in("ServingCheck").changed(status="failed")
    _, record = execute_run(unfinished=unfinished)
    statuses = {part.name: part.status for part in record.components}
    assert (statuses["Evaluator"], statuses["ServingCheck"]) == ("cached", "finished")
    push(root, "20250102-000000", 2)
    _, record = execute_run(unfinished=unfinished)
    statuses = {part.name: part.status for part in record.components}
    assert (statuses["Trainer"], statuses["Evaluator"]) == ("cached", "finished")
    assert record.components[-3].reason == "another version is live"


def test_a_step_with_an_unreadable_file_is_unfinished_while_it_is_made_again(stop_in, execute_run, root):
    _, record = execute_run()
    step = root.artifacts / "Trainer" / record.step("Trainer") / "step.json"
    step.write_text("{")  # such as of another version of this program
    stop_in("Trainer", "pusher.keep=4")
    assert not step.exists()


def test_a_run_that_cannot_be_planned_leaves_a_training_alone(run, killed, root):
    folder = train(root, killed.run_id)
    push(root, "20250101-000000")
    shutil.rmtree(root.kept)
    with pytest.raises(BadInputError, match="is live, but a new model cannot be compared"):
        run()[0]()
    assert folder.exists()
