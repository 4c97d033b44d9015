import hashlib
import json
import shutil

import pytest

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow import run_folder
from pipelines.kubeflow.compile.admission import COMPONENTS
from pipelines.kubeflow.component_plan import read_component_plan
from pipelines.kubeflow.run_folder import RunFolder, locked_for_step
from pipelines.kubeflow.steps import plan_step
from pipelines.kubeflow.steps.plan_step import plan_on_kubeflow
from pipelines.root import Root
from pipelines.root.history import read_runs, unfinished_run


@pytest.fixture
def plan(data, tmp_path):
    """Returns a function that plans a run, and gives the names of the plans by role."""

    def make(kubeflow_run, **sections):
        config = {
            "name": "data",
            "data": {"path": str(data), "label": "y"},
            "trainer": {"model": "linear"},
            "kubeflow": {"name": "data"},
            **sections,
        }
        return plan_on_kubeflow(
            Root(tmp_path / "root"), PipelineConfig.model_validate(config), kubeflow_run
        )

    return make


def read_property(root, names, key):
    """Returns an execution property of the planned CsvExampleGen."""
    parameters = read_component_plan(Root(root), names["example_gen"]).parameters["parameters"]
    return parameters[key]["fieldValue"]["stringValue"]


def changed(before, after):
    return {role for role in before if before[role] != after[role]}


def test_a_run_begins_and_each_component_has_a_plan(plan, tmp_path):
    root = tmp_path / "root"
    names = plan("run-1")
    plans = [read_component_plan(Root(root), name) for name in names.values()]
    expected = tuple(name for name in COMPONENTS if name != "Tuner")  # the run has no search
    assert tuple(found.component for found in plans) == expected
    (record,) = read_runs(Root(root))  # it goes on, though no process holds the lock
    assert record.status == "running"
    assert record.kubeflow_run == "run-1"
    assert record.columns
    assert RunFolder(Root(root), "run-1").read_run_id() == record.run_id
    assert (
        unfinished_run(Root(root)) is None
    )  # nothing that `--resume` of a local run could go on with


def test_equal_runs_have_equal_plans(plan, tmp_path):
    names = {role: name for role, name in plan("run-1").items() if role != "pusher"}
    again = plan("run-2")
    assert changed(names, again) == set()
    assert len(read_runs(Root(tmp_path / "root"))) == 2


def test_the_data_are_seen_and_not_their_name(plan, data):
    names = plan("run-1")
    text = data.read_text()
    data.write_text(text.replace("3.5,1", "3.5,0"))
    assert changed(names, plan("run-2")) >= {"example_gen"}
    data.write_text(text)
    assert changed(names, plan("run-3")) == {"pusher"}


def test_the_lock_is_not_held_while_the_data_are_read(plan, tmp_path, monkeypatch):
    read = plan_step.plan_run
    found = []

    def watched(*arguments):
        found.append(Root(tmp_path / "root").lock.is_held())
        return read(*arguments)

    monkeypatch.setattr(plan_step, "plan_run", watched)
    plan("run-1")
    assert found == [False]


def test_a_schema_that_changed_meanwhile_is_read_again(plan, tmp_path, monkeypatch):
    read = plan_step.plan_run
    schema = tmp_path / "root" / "schema" / "schema.pbtxt"
    text = 'feature { name: "x" type: FLOAT } feature { name: "y" type: INT }'
    tries = []

    def late(*arguments):
        made = read(*arguments)
        tries.append(made)
        if len(tries) == 1:
            schema.parent.mkdir(parents=True)
            schema.write_text(text)
        return made

    monkeypatch.setattr(plan_step, "plan_run", late)
    names = plan("run-1")
    assert [made.root_schema is None for made in tries] == [True, False]
    found = read_component_plan(Root(tmp_path / "root"), names["example_validator"])
    assert found.schema == schema.read_text()


def test_a_lock_that_another_step_holds_is_no_bad_input(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "LOCK_WAIT_SECS", 0)
    root = tmp_path / "root"
    with (
        locked_for_step(Root(root), "Pusher", "run-a"),
        pytest.raises(RunFailedError, match=r"lock.*the step Pusher of run run-a") as caught,
    ):
        plan("run-1")
    assert caught.value.component == "Plan"
    assert not caught.value.is_bad_input
    assert read_runs(Root(root)) == []


def test_no_step_is_taken_from_the_cache_whose_findings_are_gone(plan, tmp_path):
    names = plan("run-1")
    shutil.rmtree(tmp_path / "root" / "findings")
    assert changed(names, plan("run-2")) == set(names)


def test_spans_are_found_when_the_run_is_planned(plan, spans, tmp_path):
    root = tmp_path / "root"
    section = {"path": spans, "label": "y"}
    names = plan("run-1", data=section)
    folder = tmp_path / "span-10" / "v1"
    assert read_property(root, names, "input_base") == str(folder)
    (record,) = read_runs(Root(root))
    assert [(one["span"], one["version"]) for one in record.spans] == [(10, 1)]
    assert record.notes[0] == f"data: span 10 (version 1) of {spans}"
    # The same span makes the same plans; a newer one others.
    assert changed(names, plan("run-2", data=section)) == {"pusher"}
    newer = tmp_path / "span-11" / "v1" / "data.csv"
    newer.parent.mkdir(parents=True)
    newer.write_text((folder / "data.csv").read_text().replace("3.5,1", "3.5,0"))
    later = plan("run-3", data=section)
    assert "example_gen" in changed(names, later)
    assert read_property(root, later, "input_base") == str(newer.parent)


def test_a_plan_that_is_tried_again_takes_the_span_that_came_meanwhile(plan, spans, tmp_path):
    root = tmp_path / "root"
    section = {"path": spans, "label": "y"}
    plan("run-1", data=section)
    newer = tmp_path / "span-11" / "v1" / "data.csv"
    newer.parent.mkdir(parents=True)
    newer.write_text((tmp_path / "span-10" / "v1" / "data.csv").read_text())
    names = plan("run-1", data=section)  # no other step has begun
    (record,) = read_runs(Root(root))
    assert [one["span"] for one in record.spans] == [11]
    assert read_property(root, names, "input_base") == str(newer.parent)


def test_where_beam_works_changes_no_plan_and_reaches_the_steps(plan, tmp_path, capsys):
    names = plan("run-1")
    beam = {"direct": {"workers": 2}, "args": ["--temp_location=/tmp/b"]}
    assert changed(names, plan("run-2", beam=beam)) == {"pusher"}
    options = RunFolder(Root(tmp_path / "root"), "run-2").read_beam_options()
    assert options[1:] == (
        "--direct_num_workers=2", "--direct_running_mode=multi_processing", "--temp_location=/tmp/b",
    )  # fmt: skip
    assert not any("--runner" in note for note in read_runs(Root(tmp_path / "root"))[-1].notes)
    with pytest.raises(BadInputError, match="no meaning on Kubeflow"):
        plan("run-3", beam={"runner": "flink", "flink": {"master": "localhost:8081"}})


def test_the_plan_names_the_files_by_their_content(plan, data, tmp_path):
    planned = read_property(tmp_path / "root", plan("run-1"), "input_fingerprint")
    assert json.loads(planned) == {data.name: hashlib.sha256(data.read_bytes()).hexdigest()}


def test_data_that_change_while_the_run_is_planned_end_it(plan, data, monkeypatch):
    stage = plan_step.stage_data

    def late(*arguments):
        staged = stage(*arguments)
        data.write_text(data.read_text() + "1.5,1\n")
        return staged

    monkeypatch.setattr(plan_step, "stage_data", late)
    with pytest.raises(BadInputError, match=r"data\.csv was changed while the data were looked at"):
        plan("run-1")


@pytest.mark.parametrize(
    ("section", "settings", "role"),
    [
        ("trainer", {"model": "linear", "train_steps": 30}, "trainer"),
        ("split", {"on_label_difference": "warn"}, "example_gen"),
        ("example_validator", {"on_anomalies": "fail"}, "example_validator"),
        ("evaluator", {"confidence": 0.9}, "evaluator"),
    ],
)
def test_each_setting_is_seen_where_it_counts(plan, section, settings, role):
    names = plan("run-1")
    assert changed(names, plan("run-2", **{section: settings})) - {"pusher"} == {role}


def test_a_step_that_is_tried_again_goes_on_with_the_same_run(plan, tmp_path):
    names = plan("run-1")
    assert changed(names, plan("run-1")) == set()
    assert len(read_runs(Root(tmp_path / "root"))) == 1


def test_data_that_cannot_be_used_leave_no_run(plan, data, tmp_path):
    data.write_text("x,z\n1,2\n")
    with pytest.raises(BadInputError, match="'y'"):
        plan("run-1")
    assert read_runs(Root(tmp_path / "root")) == []
    assert RunFolder(Root(tmp_path / "root"), "run-1").read_run_id() is None
