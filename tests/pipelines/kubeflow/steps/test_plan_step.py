import hashlib
import json

import pytest

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow import run_folder
from pipelines.kubeflow.compile.admission import COMPONENTS
from pipelines.kubeflow.run_folder import RunFolder, locked_for_step
from pipelines.kubeflow.steps import plan_step
from pipelines.kubeflow.steps.plan_step import plan_on_kubeflow
from pipelines.root.history import read_runs, unfinished_run
from pipelines.runs import execution

TASKS = tuple(name for name in COMPONENTS if name != "Tuner")


@pytest.fixture
def plan(data, root):
    """Returns a function that plans a run; it gives the steps' keys, without the run that makes them."""

    def make(kubeflow_run, **sections):
        config = {
            "name": "data", "data": {"path": str(data), "label": "y"}, "trainer": {"model": "linear"},
            "kubeflow": {"name": "data"}, **sections,
        }  # fmt: skip
        keys = plan_on_kubeflow(root, PipelineConfig.model_validate(config), kubeflow_run, TASKS)
        return {component: key.partition("/")[2] for component, key in keys.items()}

    return make


def read_property(root, run, key):
    """Returns an execution property of the planned CsvExampleGen."""
    planned = RunFolder(root, run).read_plan().step("CsvExampleGen")
    return planned.plan.parameters["parameters"][key]["fieldValue"]["stringValue"]


def changed(before, after):
    return {component for component in before if before[component] != after[component]}


def test_a_run_begins_and_each_component_has_a_plan(plan, data, root):
    assert tuple(plan("run-1")) == TASKS
    (record,) = read_runs(root)  # it goes on, though no process holds the lock
    assert record.status == "running"
    assert record.kubeflow_run == "run-1"
    assert record.columns
    assert RunFolder(root, "run-1").read_run_id() == record.run_id
    assert unfinished_run(root) is None  # nothing that `--resume` of a local run could go on with
    files = {data.name: hashlib.sha256(data.read_bytes()).hexdigest()}
    assert json.loads(read_property(root, "run-1", "input_fingerprint")) == files


def test_equal_runs_have_equal_plans_and_a_step_that_is_tried_again_goes_on_with_its_run(plan, root):
    names = plan("run-1")
    assert changed(names, plan("run-1")) == set()
    assert len(read_runs(root)) == 1
    assert changed(names, plan("run-2")) == {"Pusher"}
    assert len(read_runs(root)) == 2


def test_the_data_are_seen_and_not_their_name(plan, data):
    names = plan("run-1")
    text = data.read_text()
    data.write_text(text.replace("3.5,1", "3.5,0"))
    assert changed(names, plan("run-2")) >= {"CsvExampleGen"}
    data.write_text(text)
    assert changed(names, plan("run-3")) == {"Pusher"}


def test_a_schema_that_changed_while_data_were_read_without_the_lock_is_read_again(plan, root, monkeypatch):
    read = plan_step.plan_run
    text = 'feature { name: "x" type: FLOAT } feature { name: "y" type: INT }'
    tries = []

    def late(*arguments):
        assert not root.lock.is_held()
        made = read(*arguments)
        tries.append(made)
        if len(tries) == 1:
            (root.path / "schema").mkdir(parents=True)
            (root.path / "schema" / "schema.pbtxt").write_text(text)
        return made

    monkeypatch.setattr(plan_step, "plan_run", late)
    plan("run-1")
    assert [made.root_schema is None for made in tries] == [True, False]
    used = root.artifacts.glob("RootSchema/*/schema/schema.pbtxt")
    assert [file.read_text() for file in used] == [text]  # Plan itself has made this step


def test_a_lock_that_another_step_holds_is_no_bad_input(plan, root, monkeypatch):
    monkeypatch.setattr(run_folder, "LOCK_WAIT_SECS", 0)
    with (
        locked_for_step(root, "Pusher", "run-a"),
        pytest.raises(RunFailedError, match=r"lock.*the step Pusher of run run-a") as caught,
    ):
        plan("run-1")
    assert caught.value.component == "Plan"
    assert not caught.value.is_bad_input
    assert read_runs(root) == []


def write_span(number, tmp_path, old="", new=""):
    """Writes the rows of span 10 as another span, with a change; returns its folder."""
    folder = tmp_path / f"span-{number}" / "v1"
    folder.mkdir(parents=True)
    rows = (tmp_path / "span-10" / "v1" / "data.csv").read_text()
    (folder / "data.csv").write_text(rows.replace(old, new))
    return folder


def test_spans_are_found_when_the_run_is_planned(plan, spans, tmp_path, root):
    section = {"path": spans, "label": "y"}
    names = plan("run-1", data=section)
    assert read_property(root, "run-1", "input_base") == str(tmp_path / "span-10" / "v1")
    (record,) = read_runs(root)
    assert [(one["span"], one["version"]) for one in record.spans] == [(10, 1)]
    assert record.notes[0] == f"data: span 10 (version 1) of {spans}"
    # The same span makes the same plans; a newer one others.
    assert changed(names, plan("run-2", data=section)) == {"Pusher"}
    newer = write_span(11, tmp_path, "3.5,1", "3.5,0")
    later = plan("run-3", data=section)
    assert "CsvExampleGen" in changed(names, later)
    assert read_property(root, "run-3", "input_base") == str(newer)


def test_a_plan_that_is_tried_again_takes_the_span_that_came_meanwhile(plan, spans, tmp_path, root):
    section = {"path": spans, "label": "y"}
    plan("run-1", data=section)
    newer = write_span(11, tmp_path)
    plan("run-1", data=section)  # no other step has begun
    (record,) = read_runs(root)
    assert [one["span"] for one in record.spans] == [11]
    assert read_property(root, "run-1", "input_base") == str(newer)


def test_where_beam_works_changes_no_plan_and_reaches_the_steps(plan, root):
    names = plan("run-1")
    beam = {"direct": {"workers": 2}, "args": ["--temp_location=/tmp/b"]}
    assert changed(names, plan("run-2", beam=beam)) == {"Pusher"}
    options = RunFolder(root, "run-2").read_plan().beam_options
    assert options[1:] == (
        "--direct_num_workers=2", "--direct_running_mode=multi_processing", "--temp_location=/tmp/b",
    )  # fmt: skip
    assert not any("--runner" in note for note in read_runs(root)[-1].notes)
    with pytest.raises(BadInputError, match="does not work on Kubeflow"):
        plan("run-3", beam={"runner": "flink", "flink": {"master": "localhost:8081"}})


def test_data_that_change_while_the_run_is_planned_end_it(plan, data, monkeypatch):
    stage = execution.stage_data

    def late(*arguments):
        staged = stage(*arguments)
        data.write_text(data.read_text() + "1.5,1\n")
        return staged

    monkeypatch.setattr(execution, "stage_data", late)
    with pytest.raises(BadInputError, match=r"data\.csv was changed while the data were being read"):
        plan("run-1")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("section", "settings", "component"),
    [
        ("trainer", {"model": "linear", "train_steps": 30}, "Trainer"),
        ("split", {"on_label_difference": "warn"}, "CsvExampleGen"),
        ("example_validator", {"on_anomalies": "fail"}, "ExampleValidator"),
        ("evaluator", {"confidence": 0.9}, "Evaluator"),
    ],
)
def test_each_setting_is_seen_where_it_counts(plan, section, settings, component):
    names = plan("run-1")
    others = changed(names, plan("run-2", **{section: settings}))
    assert min(others, key=TASKS.index) == component


def test_data_that_cannot_be_used_leave_no_run(plan, data, root):
    data.write_text("x,z\n1,2\n")
    with pytest.raises(BadInputError, match="'y'"):
        plan("run-1")
    assert read_runs(root) == []
    assert RunFolder(root, "run-1").read_run_id() is None


def test_runs_are_numbered_under_the_lock_of_the_volume(plan, killed, root):
    root.records.write(killed.changed(run_id="20990101-000000", status="failed", number=4))
    plan("run-1")
    plan("run-2")
    plan("run-1")  # the step is tried again
    runs = [(record.kubeflow_run, record.number) for record in root.records.read_all()]
    assert runs == [(None, 0), (None, 4), ("run-1", 5), ("run-2", 6)]
    assert root.records.newest().kubeflow_run == "run-2"
