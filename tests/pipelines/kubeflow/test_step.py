import json
import signal

import pytest

from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow import step
from pipelines.kubeflow.component_plan import ComponentPlan, write_component_plan
from pipelines.kubeflow.run_folder import RunFolder, StepEnd
from pipelines.kubeflow.steps import plan_step, record_steps
from pipelines.root import Root


@pytest.fixture(autouse=True)
def run_id(monkeypatch):
    monkeypatch.setenv("KFP_RUN_ID", "run-1")


def plan_arguments(tmp_path, config_of):
    return [
        "Plan", "--root", str(tmp_path), "--run", "run-1", "--config",
        config_of().model_dump_json(), "--parameter", "trainer.train_steps", "70",
        "--plan-of", "trainer", str(tmp_path / "out" / "trainer"),
    ]  # fmt: skip


def test_plan_hands_the_names_of_the_plans_on(tmp_path, config_of, monkeypatch):
    asked = []

    def plan(root, config, kubeflow_run):
        asked.append((root, config.trainer.train_steps, kubeflow_run))
        return {"trainer": "abc", "pusher": "def"}

    monkeypatch.setattr(plan_step, "plan_on_kubeflow", plan)
    assert step.main(plan_arguments(tmp_path, config_of)) == 0
    assert asked == [(Root(tmp_path), 70, "run-1")]
    assert (tmp_path / "out" / "trainer").read_text() == "abc"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInputError("no such file"), 2),
        (RunFailedError("Plan", "it broke"), 1),
        (RunFailedError("Plan", "bad rows", is_bad_input=True), 2),
        (ValueError("odd"), 1),
        (SystemExit("left"), 1),
        (signal.SIGTERM, 1),
    ],
)
def test_a_failure_is_kept_and_its_reason_is_the_last_line(
    tmp_path, config_of, monkeypatch, capsys, handles_signals, error, code
):
    def plan(*arguments):
        if isinstance(error, signal.Signals):
            signal.raise_signal(error)
        raise error

    monkeypatch.setattr(plan_step, "plan_on_kubeflow", plan)
    assert step.main(plan_arguments(tmp_path, config_of)) == code
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("Plan: ")
    assert str(error) in last or "stopped by a signal" in last
    (end,) = RunFolder(Root(tmp_path), "run-1").failures()
    assert last == f"Plan: {end.reason}"
    assert end.is_bad_input == (code == 2)


def test_a_root_that_cannot_be_written_to_hides_no_reason(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("no folder")

    def end(root, run):
        raise ValueError("odd")

    monkeypatch.setattr(record_steps, "end_run", end)
    assert step.main(["End", "--root", str(tmp_path / "file"), "--run", "run-1"]) == 1
    said = capsys.readouterr().err
    assert "could not be kept" in said
    assert said.strip().splitlines()[-1].startswith("End: ValueError: odd")


def test_a_component_without_its_plan_says_what_is_wrong(tmp_path, capsys):
    RunFolder(Root(tmp_path), "run-1").write_run("20260102-030405")
    assert step.main(component_arguments("Trainer", tmp_path, tmp_path)) == 1
    assert "every step mounts" in capsys.readouterr().err
    assert RunFolder(Root(tmp_path), "run-1").failures()[0].component == "Trainer"
    assert not (tmp_path / "out.json").exists()


def component_arguments(component, root, tmp_path):
    given = {"inputs": {}, "outputs": {"outputFile": str(tmp_path / "out.json")}}
    arguments = [component, "--root", str(root), "--plan", "0" * 64, "--run", "run-1"]
    return [*arguments, "--executor-input", json.dumps(given), "--findings", str(tmp_path / "f")]


@pytest.mark.parametrize("component", ["Trainer", "Pusher"])
def test_a_step_of_a_run_that_is_over_does_nothing(tmp_path, capsys, component):
    push = {"baseline_version": None} if component == "Pusher" else None
    root = tmp_path / "root"
    plan = ComponentPlan(component, {}, {}, "", push=push)
    name = write_component_plan(Root(root), plan)
    arguments = component_arguments(component, root, tmp_path)
    arguments[arguments.index("0" * 64)] = name
    assert step.main(arguments) == 1
    assert "the run is over" in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (root / "kept").exists()


def test_a_step_that_is_tried_again_reopens_its_run(tmp_path, killed):
    root = tmp_path / "root"
    folder = RunFolder(Root(root), "run-1")
    folder.write_run(killed.run_id)
    folder.write_step(StepEnd("Trainer", 1.0, "it broke", is_bad_input=True))
    assert step.main(["End", "--root", str(root), "--run", "run-1"]) == 0
    assert Root(root).records.read(killed.run_id).status == "failed"
    name = write_component_plan(Root(root), ComponentPlan("Trainer", {"type": "none"}, {}, ""))
    arguments = component_arguments("Trainer", root, tmp_path)
    arguments[arguments.index("0" * 64)] = name
    assert step.main(arguments) == 1  # there is no such executor; but the run goes on
    record = Root(root).records.read(killed.run_id)
    assert (record.status, record.reason, record.is_bad_input) == ("running", None, False)


def test_a_step_whose_code_is_not_what_was_planned_does_nothing(tmp_path, killed, capsys):
    root = tmp_path / "root"
    RunFolder(Root(root), "run-1").write_run(killed.run_id)
    code = {"source": {}, "digests": {"the libraries": "of another image"}}
    name = write_component_plan(
        Root(root), ComponentPlan("Trainer", {"type": "none"}, {}, "", code=code)
    )
    arguments = component_arguments("Trainer", root, tmp_path)
    arguments[arguments.index("0" * 64)] = name
    assert step.main(arguments) == 1
    assert "the libraries changed after the step Plan" in capsys.readouterr().err


def test_a_try_that_failed_does_not_count_when_the_next_one_went_well(
    tmp_path, config_of, monkeypatch
):
    RunFolder(Root(tmp_path), "run-1").write_step(StepEnd("Plan", 1.0, "no such file"))
    monkeypatch.setattr(plan_step, "plan_on_kubeflow", lambda *_: {"trainer": "abc"})
    assert step.main(plan_arguments(tmp_path, config_of)) == 0
    assert RunFolder(Root(tmp_path), "run-1").failures() == []


def test_end_says_how_the_run_ended(tmp_path, killed, capsys):
    root = tmp_path / "root"
    RunFolder(Root(root), "run-1").write_run(killed.run_id)
    assert step.main(["End", "--root", str(root), "--run", "run-1"]) == 0
    assert f"run {killed.run_id}: failed" in capsys.readouterr().err
    assert step.main(["End", "--root", str(root), "--run", "run-2"]) == 0
    assert "before its record was begun" in capsys.readouterr().err
