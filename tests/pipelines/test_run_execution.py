import components  # noqa: I001  Before TFX: makes TFDV importable.

from dataclasses import replace

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.types.standard_artifacts import (
    ExampleAnomalies,
    ExampleStatistics,
    ModelBlessing,
    ModelEvaluation,
    PushedModel,
)

from components.evaluator.verdict import Verdict
from pipelines import metadata_store, run_execution
from pipelines.errors import RunFailedError
from pipelines.progress import Progress
from pipelines.run_execution import execute
from pipelines.run_plan import RunRequest, plan_run
from pipelines.run_record import RunRecords
from pipelines.run_recorder import RunRecorder, start_record
from pipelines.runners import component_launcher

assert components


class FakeLauncher:
    """Stands for TFX: every component is said to have run, and its outputs are those in `leaves`.

    Attributes:
      leaves: Output artifacts by type.
    """

    leaves = {}

    def __init__(self, pipeline, run_id, fingerprints, observer, checks):
        self.components = pipeline.components
        self.run_id, self.fingerprints = run_id, fingerprints
        self._observer, self._checks = observer, checks

    def run(self, component):
        self._observer.component_started(component)
        self._observer.component_finished(component, False, 1.5)
        if component in self._checks:
            self._checks[component](
                {key: [self.artifact(channel)] for key, channel in component.outputs.items()}
            )

    def artifact(self, channel):
        return self.leaves[channel.type]


class AllAtOnce:
    def run(self, launcher):
        self.launcher = launcher
        for component in launcher.components:
            launcher.run(component)


@pytest.fixture
def leave(tmp_path, monkeypatch):
    """Returns a function that says what the components leave behind."""

    def make(verdict, version, anomalies=0, num_eval_examples=5):
        evaluation, pushed, found = ModelEvaluation(), PushedModel(), ExampleAnomalies()
        evaluation.uri, found.uri = str(tmp_path), str(tmp_path)
        verdict.write(evaluation.uri)
        pushed.set_int_custom_property("pushed", int(version is not None))
        if version is not None:
            pushed.set_string_custom_property("pushed_version", version)
        found.splits = ["train"]
        proto = anomalies_pb2.Anomalies()
        for number in range(anomalies):
            proto.anomaly_info[f"column {number}"].description = "Odd."
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
        leaves = {
            ExampleStatistics: statistics,
            ModelEvaluation: evaluation,
            ModelBlessing: ModelBlessing(),
            PushedModel: pushed,
            ExampleAnomalies: found,
        }
        monkeypatch.setattr(FakeLauncher, "leaves", leaves)
        monkeypatch.setattr(component_launcher, "ComponentLauncher", FakeLauncher)

    return make


@pytest.fixture
def run(data, tmp_path, display):
    """Returns a function that executes a plan, and gives the outcome, the record and the runner."""

    def execute_plan(*settings, **former):
        plan = plan_run(
            RunRequest(root=tmp_path / "root", data=str(data), label="y", settings=settings),
            display,
        )
        plan = replace(plan, **former)
        recorder = RunRecorder(RunRecords(tmp_path / "root"), start_record(plan), display)
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
    # In the order of the configuration, and without the difference of what is there twice.
    record = recorder.record
    assert list(record.metrics.items()) == [("auc", 0.9), ("accuracy", 0.8), ("other_diff", 2.0)]
    assert record.baseline_metrics == {"auc": 0.8}
    assert list(record.slices["x:1"].items()) == [("auc", None), ("accuracy", 0.7)]
    ran = [(part.name, part.status, part.elapsed_secs) for part in recorder.record.components]
    assert ran == [(part.id, "finished", 1.5) for part in runner.launcher.components]
    assert "✓ Trainer  1.5 s" in shown.getvalue()
    assert runner.launcher.run_id == recorder.record.run_id
    fingerprints = runner.launcher.fingerprints
    assert set(fingerprints) == set(runner.launcher.components)
    # That of the Pusher holds the run's id: no run takes another one's push from the cache.
    assert [part.id for part, text in fingerprints.items() if recorder.record.run_id in text] == [
        "Pusher"
    ]


def test_a_model_that_is_not_blessed(leave, run):
    leave(Verdict(blessed=False, metrics={"auc": 0.5}, failures=["too low", "too old"]), None)
    start, _, _ = run()
    outcome = start()
    assert (outcome.status, outcome.version) == ("not_blessed", None)
    assert outcome.reason == "too low; too old"


def test_anomalies_are_noted(leave, run):
    leave(PASSED, version="1", anomalies=2)
    start, recorder, _ = run()
    assert start().status == "pushed"
    assert recorder.record.notes[-1] == "anomaly: train split, column 'column 1': Odd."
    assert sum(note.startswith("anomaly") for note in recorder.record.notes) == 2


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


@pytest.mark.parametrize("former", ["mended", "unfinished", None])
def test_a_run_goes_on_with_a_training(leave, run, killed, tmp_path, monkeypatch, former):
    leave(PASSED, version="1")
    (tmp_path / "root/metadata").mkdir()
    metadata_store.metadata_file(tmp_path / "root").touch()
    monkeypatch.setattr(metadata_store, "relocate_artifacts", lambda *arguments: 0)
    monkeypatch.setattr(metadata_store, "cancel_killed_executions", lambda *arguments: [])
    monkeypatch.setattr(metadata_store, "open_store", lambda root: None)
    monkeypatch.setattr(metadata_store, "output_of", lambda *arguments: None)
    formers = {None: {}, "unfinished": {"unfinished": killed}, "mended": {"mended": (killed,)}}
    start, recorder, _ = run(**formers[former])
    trainings = tmp_path / "root/artifacts/Trainer/model_run/unfinished"
    (trainings / f"{killed.run_id}-0a").mkdir(parents=True)
    start()
    assert (recorder.record.run_id == killed.run_id) is (former == "unfinished")
    assert recorder.record.mended == (killed.run_id if former == "mended" else None)
    left = [path.name for path in trainings.iterdir()] if trainings.exists() else []
    assert left == ([f"{recorder.record.run_id}-handed-over"] if former else [])


def test_the_plan_of_the_generic_model_and_copied_data_are_noted(leave, run, data):
    leave(PASSED, version="1")
    data.write_text(data.read_text() + "7.5,\n")  # a row without a label
    start, recorder, _ = run()
    start()
    assert recorder.record.notes[0].startswith("binary problem: 'y' with 2 classes from 1 numeric")
    assert recorder.record.notes[1].startswith("data: 1 rows without a value in 'y' are left out")


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
    assert recorder.record.notes[0].startswith("column 'x' is taken for text: 1 of 41 values")
    assert f"{data}, line 42: 'oops'" in recorder.record.notes[0]
