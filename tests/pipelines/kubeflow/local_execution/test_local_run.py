"""A compiled pipeline from the CSV to the pushed model, step by step."""

import io
import json
from pathlib import Path

import pytest
import yaml

from pipelines.config.load import load_config
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError
from pipelines.examples.taxi.generate import write_csv
from pipelines.kubeflow.local_execution import local_run
from pipelines.kubeflow.local_execution.local_run import run_locally, with_local_paths
from pipelines.kubeflow.local_execution.workflow import TaskDisplay
from pipelines.root import Root
from pipelines.root.history import read_runs, run_of_version
from pipelines.root.rollback import rollback
from pipelines.root.schema.acceptance import accept_schema
from pipelines.runs.checks.component_checks import Findings
from pipelines.runs.recorder import RunRecorder
from pipelines.terminal.progress import PlainDisplay, Progress
from tests.pipelines.root.test_records import RECORD
from tests.pipelines.steps.conftest import Team

COMPONENTS = [
    "CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform", "Trainer",
    "Evaluator", "ServingCheck", "Pusher",
]  # fmt: skip

UNCHECKED = ("evaluator.default_checks=false", 'evaluator.thresholds=[{metric = "auc", lower = 0.1}]')


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("kubeflow") / "root"


@pytest.fixture(scope="module")
def first(root, run_here, little_settings):
    return run_here(root, *little_settings)


def statuses(record):
    return {component.name: component.status for component in record.components}


def test_a_model_is_pushed_and_the_run_recorded_as_a_local_one(first, root):
    assert first.status == "pushed"
    assert statuses(first) == dict.fromkeys(COMPONENTS, "finished")
    assert first.metrics["auc"] > 0.9
    assert first.checks
    assert all(check["passed"] for check in first.checks)
    assert first.label_by_split
    assert [row["name"] for row in first.columns] == ["size", "color", "sold"]
    assert Path(first.report).is_file()
    assert Path(first.log).is_file()
    (version,) = Root(root).versions.served()
    assert first.version == str(version)
    assert (root / "serving" / first.version / "saved_model.pb").is_file()
    assert (root / "schema" / "schema.pbtxt").is_file()
    assert read_runs(Root(root))[0].run_id == first.run_id
    assert not list((root / "kubeflow").iterdir())  # the steps' files for each other
    executed = (root / "kubeflow_local" / "pipeline.yaml").read_text()
    assert next(yaml.safe_load_all(executed))["pipelineInfo"]["name"] == "little"


@pytest.mark.more
def test_the_same_again_is_taken_from_the_cache_and_not_pushed(first, root, run_here, little_settings):
    second = run_here(root, *little_settings)
    assert second.status == "unchanged"
    # Another version serves, and the data are held against the schema that is kept since.
    ran = {"RootSchema", "ExampleValidator", "Evaluator", "ServingCheck", "Pusher"}
    assert statuses(second) == {n: "finished" if n in ran else "cached" for n in ("RootSchema", *COMPONENTS)}
    assert second.baseline_version == first.version
    assert second.baseline_metrics["auc"] == pytest.approx(first.metrics["auc"], abs=1e-9)
    assert second.label_by_split == first.label_by_split  # findings of a cached step
    third = run_here(root, *little_settings)
    cached = dict.fromkeys(("RootSchema", *COMPONENTS), "cached")
    assert statuses(third) == {**cached, "Pusher": "finished"}
    assert third.metrics == second.metrics


@pytest.mark.slow
def test_a_parameter_of_the_run_reaches_the_training(first, root, run_here, little_settings):
    other = run_here(root, *little_settings, parameters={"train_steps": "90"})
    assert other.config["trainer"]["train_steps"] == 90
    assert statuses(other)["Transform"] == "cached"
    assert statuses(other)["Trainer"] == "finished"
    assert other.status in ("pushed", "not_blessed")


@pytest.mark.slow
def test_other_data_at_the_same_path_are_seen(tmp_path, run_here, little_data, little_settings):
    file = tmp_path / "little.csv"
    text = little_data.read_text()
    settings = (f"data.path={file}", *little_settings[1:])
    stopped = (*settings, "trainer.train_steps=1", *UNCHECKED)
    for content in (text, text.replace(",red,", ",blue,")):
        file.write_text(content)
        record = run_here(tmp_path / "root", *stopped)
        assert statuses(record)["CsvExampleGen"] == "finished"


@pytest.mark.slow
def test_a_threshold_that_is_not_reached(tmp_path, run_here, little_settings):
    bound = 'evaluator.thresholds=[{metric = "auc", lower = 0.9999}]'
    record = run_here(tmp_path / "root", *little_settings, bound)
    assert record.status == "not_blessed"
    assert "auc" in record.reason
    assert not Root(tmp_path / "root").versions.served()
    assert not list((tmp_path / "root").glob("kept/*"))


def test_data_that_cannot_be_used_leave_no_run(tmp_path, run_here, little_settings):
    with pytest.raises(BadInputError, match=r"nothing\.csv on this .*here, pass --set data\.path=FILE"):
        run_here(tmp_path / "root", *little_settings, f"data.path={tmp_path / 'nothing.csv'}")
    assert read_runs(Root(tmp_path / "root")) == []


def test_a_plan_that_fails_gives_its_reason_and_the_path_of_its_log(tmp_path, run_here, little_settings):
    with pytest.raises(BadInputError, match="no label column 'nothing'") as caught:
        run_here(tmp_path / "root", *little_settings, "data.label=nothing")
    (log,) = (tmp_path / "root" / "logs").glob("kubeflow-*/plan.log")
    assert str(caught.value).endswith(f" (log: {log})")


def test_one_run_at_a_time(tmp_path, run_here, little_settings):
    root = tmp_path / "root"
    lock = Root(root).lock
    for part in (lock.writing, lock.local_kubeflow):
        with part.held(), pytest.raises(BadInputError, match="Another run is in progress"):
            run_here(root, *little_settings)
    assert not (root / "logs").exists()


@pytest.mark.more
def test_a_check_that_fails_ends_the_run_with_its_reason(tmp_path, run_here):
    # Each of the files has another label, and the files are the splits.
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, label in (("train", "no"), ("eval", "yes")):
        rows = [f"{number}.5,{label if number % 9 else 'yes' if label == 'no' else 'no'}"
                for number in range(300)]  # fmt: skip
        (folder / f"{name}.csv").write_text("size,sold\n" + "\n".join(rows) + "\n")
    splits = ("split.by=files", "split.train=train.csv", "split.eval=eval.csv")
    settings = (f"data.path={folder}", "data.label=sold", *splits, "kubeflow.name=little")
    record = run_here(tmp_path / "root", *settings)
    assert record.status == "failed"
    assert record.is_bad_input
    assert record.reason.startswith("CsvExampleGen: the splits differ in the label")
    assert statuses(record) == {"CsvExampleGen": "finished"}  # its check has failed
    assert record.label_by_split  # found before it failed


@pytest.mark.more
def test_users_code_that_fails_names_the_line(tmp_path, run_here, little_settings):
    module = tmp_path / "broken_module.py"
    module.write_text(
        "def preprocessing_fn(inputs):\n    return inputs['nothing']\n\n"
        "def trainer_fn(args, schema):\n    return {}\n"
    )
    record = run_here(tmp_path / "root", *little_settings[:2], f"module.file={module}")
    assert record.status == "failed"
    assert record.reason.startswith("Transform: KeyError: 'nothing'")
    assert "broken_module.py, line 2" in record.reason
    assert "kubeflow-" in record.log
    assert Path(record.log).name == "transform.log"
    assert Path(record.log).read_text().rstrip().endswith(record.reason)
    assert read_runs(Root(tmp_path / "root"))[0].log == record.log
    assert statuses(record)["Transform"] == "failed"


@pytest.mark.slow
def test_a_rollback_is_what_the_next_run_is_compared_with(first, root, run_here, little_settings):
    version = str(Root(root).versions.served()[-1])  # of the first run, or of one with a parameter
    served = run_of_version(Root(root), version)
    other = run_here(root, *little_settings, "trainer.seed=5", *UNCHECKED)
    assert other.status == "pushed"
    assert other.baseline_version == version
    rollback(Root(root))
    third = run_here(root, *little_settings, "trainer.seed=6")
    assert third.baseline_version == version
    assert third.baseline_metrics["auc"] == pytest.approx(served.metrics["auc"], abs=1e-9)


def test_notes_are_shown_once_and_marked_as_information_or_warning(tmp_path):
    out = io.StringIO()
    shown = TaskDisplay(Progress(PlainDisplay(out)), Root(tmp_path), "k-1")
    begun = RECORD.changed(kubeflow_run="k-1", notes=())
    recorder = RunRecorder(Root(tmp_path), begun, PlainDisplay(io.StringIO()))
    recorder.note("data: span 8 of /mnt/span-{SPAN}")
    recorder.warn("zip: leading zeros")
    shown.task_finished("Trainer", False, 2.0)
    shown.task_finished("Plan", False, 2.0)
    recorder.add_findings(Findings(facts=("pushed to /mnt/served/7",), notes=("fare: metres?",)))
    shown.task_finished("Record", False, 2.0)
    assert out.getvalue().splitlines() == [
        "✓ Trainer  2.0 s",
        "✓ Plan  2.0 s",
        "i data: span 8 of /mnt/span-{SPAN}",
        "! zip: leading zeros",
        "✓ Record  2.0 s",
        "i pushed to /mnt/served/7",
        "! fare: metres?",
    ]


@pytest.fixture
def begin_here(tmp_path, little_settings, monkeypatch):
    """Returns a function that begins a run, up to the compilation; it returns what is shown."""

    def stop(config):
        raise BadInputError("far enough")

    monkeypatch.setattr(local_run, "compile_pipeline", stop)

    def begin(*settings, message="far enough", parameters=()):
        out = io.StringIO()
        config = load_config(settings=(*little_settings, *settings))
        with pytest.raises(BadInputError, match=message):
            run_locally(Root(tmp_path / "root"), config, Progress(PlainDisplay(out)), dict(parameters))
        return out.getvalue()

    return begin


def test_a_training_job_that_is_not_used_is_told(begin_here):
    cluster = ("trainer.workers=2", "trainer.ps=1", "kubeflow.root=/mnt/p/taxi")
    line = "i kubeflow.training_job is not used with --local"
    job = "kubeflow.training_job.kind=job"
    assert line in begin_here(*cluster, job)
    assert line not in begin_here(*cluster, job, "kubeflow.training_job.api_server=http://127.0.0.1:9")
    assert line not in begin_here(*cluster)


def test_data_of_a_parameter_are_not_looked_for_here(begin_here, tmp_path):
    nowhere = f"data.path={tmp_path / 'none' / 'span-{SPAN}' / '*.csv'}"
    begin_here(nowhere, message=r"file or folder \S+none on this machine")
    begin_here(nowhere, parameters={"data_path": str(tmp_path)})


def test_the_configuration_as_it_is_seen_here(tmp_path):
    kubeflow = {"image": "of/the:cluster", "root": "/mnt/taxi"}
    trainer = {"components": {"Trainer": {"cache": True, "cpu": "2"}}}
    data = {"path": str(tmp_path / "data" / "{SPAN}" / "*.csv"), "label": "y"}
    config = PipelineConfig.model_validate({"name": "taxi", "data": data, "kubeflow": kubeflow | trainer})
    seen = with_local_paths(config, Root(tmp_path / "root"), enable_cache=False)
    assert seen.kubeflow.root == str(tmp_path / "root")
    assert seen.kubeflow.image == "of/the:cluster"
    assert seen.kubeflow.pipeline_root is None  # no task has an artifact there
    assert [volume.path for volume in seen.kubeflow.volumes] == [str(tmp_path), str(tmp_path / "data")]
    assert not seen.kubeflow.cache
    assert seen.kubeflow.components["Trainer"].cache is False
    assert seen.kubeflow.components["Trainer"].cpu == "2"


@pytest.mark.slow
def test_odd_data_are_accepted_and_then_compared_with(tmp_path, run_here, little_data, little_settings):
    root, file = tmp_path / "root", tmp_path / "little.csv"
    settings = (f"data.path={file}", *little_settings[1:])
    text = little_data.read_text()
    file.write_text(text)
    assert run_here(root, *settings).status == "pushed"
    file.write_text(text.replace(",blue,", ",violet,"))
    failed = run_here(root, *settings)
    assert failed.status == "failed"
    assert failed.reason.startswith("ExampleValidator: the data failed validation")
    assert "schema accept" in failed.reason
    assert any(note.startswith("anomaly: ") for note in failed.notes)
    accepted = accept_schema(Root(root))
    assert accepted.run_id == failed.run_id
    third = run_here(root, *settings)
    assert statuses(third)["Transform"] == "finished"
    assert not any(note.startswith("anomaly: ") for note in third.notes)


@pytest.mark.slow
def test_each_container_for_itself_gives_what_the_local_runner_gives(tmp_path, little_settings, warm_command):
    settings = [word for setting in little_settings for word in ("--set", setting)]
    lines = {}
    for runner in (("local",), ("kubeflow", "--local")):
        ran = warm_command("run", *settings, "--root", tmp_path / runner[0], "--runner", *runner)
        assert ran.returncode == 0, ran.stderr
        lines[runner[0]] = json.loads(ran.stdout.splitlines()[-1])
    ours, local = lines["kubeflow"], lines["local"]
    assert ours["status"] == local["status"] == "pushed"
    assert ours["metrics"] == pytest.approx(local["metrics"], abs=1e-6)
    assert len(ours["checks"]) == len(local["checks"])


@pytest.mark.slow
def test_a_module_file_is_found_by_every_container(tmp_path, warm_command):
    data = tmp_path / "taxi.csv"
    write_csv(data, rows=1500, seed=1)
    module = tmp_path / "code" / "taxi_of_a_file.py"
    module.parent.mkdir()
    module.write_text("from pipelines.examples.taxi.taxi_module import preprocessing_fn, trainer_fn\n")
    settings = (
        f"data.path={data}", "data.label=tips", f"module.file={module}", "evaluator.label=tips_xf",
        "trainer.train_steps=60", "trainer.eval_steps=2", "kubeflow.name=taxi", *UNCHECKED,
    )  # fmt: skip
    words = [word for setting in settings for word in ("--set", setting)]
    ran = warm_command("run", *words, "--root", tmp_path / "root", "--runner", "kubeflow", "--local")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["status"] == "pushed"


def reasons(record):
    return {component.name: component.reason for component in record.components}


@pytest.mark.more
def test_a_pipeline_of_the_users_own(tmp_path, run_here):
    team = Team(tmp_path)
    team.define("""
        def create_pipeline():
            write = Write(text=RuntimeParameter(name="text", ptype=str))
            latest = Resolver(
                strategy_class=LatestArtifactStrategy,
                examples=Channel(type=Examples, producer_component_id="Write"),
            ).with_id("latest")
            latest.add_upstream_node(write)
            times = RuntimeParameter(name="times", ptype=int, default=3)
            copy = Copy(examples=write.outputs["examples"], times=times)
            newest = Copy(examples=latest.outputs["examples"]).with_id("Newest")
            return pipeline(write, latest, copy, newest)
    """)

    def run(text, **request):
        source = {"file": str(team.file), "parameters": {"text": text}}
        config = TfxPipelineConfig.model_validate({"pipeline": source})
        return run_here(team.root.path, config=config, **request)

    first = run("ab")
    assert first.status == "finished"
    assert statuses(first) == dict.fromkeys(("Write", "Copy", "Newest"), "finished")
    assert (team.text("Copy"), team.text("Newest")) == ("ababab", "abab")
    assert not list(team.root.kubeflow.iterdir())

    second = run("ab")  # KFP's cache has the tasks
    assert not (team.root.logs / f"kubeflow-{second.kubeflow_run}" / "copy.log").exists()
    assert second.status == "unchanged"
    assert statuses(second)["Write"] == statuses(second)["Copy"] == "cached"
    assert reasons(second)["Copy"] == (f"same data, code and settings as run {first.run_id}")

    third = run("ab", parameters={"text": "c"})
    assert third.config["pipeline"]["parameters"] == {"text": "c", "times": 3}
    assert statuses(third)["Copy"] == "finished"
    assert team.text("Copy") == "ccc"

    failed = run("ab", parameters={"times": "-1"})
    assert failed.status == "failed"
    assert failed.reason.startswith("Copy: ValueError: times is negative")
    assert failed.reason in Path(failed.log).read_text()
