import errno
import importlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from components.pusher.provenance import Provenance
from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow import step
from pipelines.kubeflow.component_plan import ComponentPlan, write_component_plan
from pipelines.kubeflow.run_folder import RunFolder, StepEnd
from pipelines.kubeflow.steps import component_step, plan_step, record_steps
from pipelines.root import Root
from pipelines.root.records import RunOutcome
from tests.pushed_versions import write_version


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


class Component:
    """A component whose tries go as listed: an error, or None for success."""

    def __init__(self, name, root, folder, *tries):
        self.root, self.name, self.tries = root, name, list(tries)
        self.seen = []  # record at the start of each try: its status and reason
        write = write_component_plan(root, ComponentPlan(name, {"type": "none"}, {}, ""))
        self.arguments = component_arguments(name, root, folder)
        self.arguments[self.arguments.index("0" * 64)] = write
        self.arguments += ["--output", "model", str(folder / "model")]

    def run(self, call, plan, findings):
        (record,) = self.root.records.read_all()
        self.seen.append((record.status, record.reason))
        findings.note(f"note {len(self.seen)} of {self.name}")
        model = Path(call.outputs["model"])
        assert not model.exists()  # nothing of an earlier try
        model.mkdir(parents=True)
        outcome = self.tries.pop(0)
        if isinstance(outcome, signal.Signals):
            signal.raise_signal(outcome)
        if outcome is not None:
            raise outcome
        return {}

    def main(self, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(component_step, "run_component", self.run)
            return step.main(self.arguments, **options)

    def record(self):
        (record,) = self.root.records.read_all()
        return record


@pytest.fixture
def begun(killed, tmp_path):
    """The root of a run that the step Plan has begun."""
    root = Root(tmp_path / "root")
    root.records.write(killed.changed(kubeflow_run="run-1"))
    RunFolder(root, "run-1").write_run(killed.run_id, num_notes=0)
    return root


def end(root):
    assert step.main(["End", "--root", str(root), "--run", "run-1"]) == 0


def test_the_record_is_true_after_a_retry_in_which_the_exit_handler_does_not_run(begun, tmp_path):
    trainer = Component("Trainer", begun, tmp_path, ValueError("one"), ValueError("two"), None)
    assert trainer.main() == 1
    end(begun)  # Argo keeps it: a Retry does not run it again
    assert trainer.record().reason.startswith("Trainer: ValueError: one")
    assert trainer.main() == 1
    record = trainer.record()
    assert record.status == "failed"
    assert record.reason.startswith("Trainer: ValueError: two")
    assert record.finished
    assert [(one.name, one.status) for one in record.components] == [("Trainer", "failed")]
    assert trainer.main() == 0
    assert (trainer.record().status, trainer.record().reason) == ("running", None)
    assert trainer.seen == [("running", None)] * 3
    outcome = json.dumps(asdict(RunOutcome("pushed", version="5")))
    findings = (tmp_path / "f").read_text()
    arguments = ["--outcome", outcome, "--findings-of", "Trainer", findings]
    assert step.main(["Record", "--root", str(begun), "--run", "run-1", *arguments]) == 0
    record = trainer.record()
    assert (record.status, record.version, record.reason) == ("pushed", "5", None)
    assert record.notes == ("note 3 of Trainer",)


def test_a_failure_counts_until_its_step_is_tried_again(begun, tmp_path):
    evaluator = Component("Evaluator", begun, tmp_path / "a", ValueError("odd"), None)
    check = Component("ServingCheck", begun, tmp_path / "b", ValueError("even"), None, None)
    assert evaluator.main() == 1
    assert check.main() == 1
    assert check.seen == [("failed", evaluator.record().reason)]
    assert evaluator.record().reason.startswith("Evaluator: ValueError: odd")
    assert check.main() == 0
    assert check.record().status == "failed"
    assert check.record().reason.startswith("Evaluator: ")
    assert evaluator.main() == 0
    assert evaluator.seen[1] == ("running", None)
    assert check.main() == 0
    assert check.record().status == "running"


def test_a_run_whose_step_got_a_signal_is_interrupted(
    begun, tmp_path, handles_signals, monkeypatch
):
    close = record_steps.close_failed_run

    def close_at_second_signal(*given):
        time.sleep(0.4)  # a signal that comes earlier counts as the same
        signal.raise_signal(signal.SIGTERM)
        close(*given)

    monkeypatch.setattr(record_steps, "close_failed_run", close_at_second_signal)
    trainer = Component("Trainer", begun, tmp_path, signal.SIGTERM)
    assert trainer.main() == 1
    assert trainer.record().status == "interrupted"
    assert "Trainer: stopped by a signal" in trainer.record().reason
    end(begun)
    assert trainer.record().status == "interrupted"


def test_a_record_that_another_run_keeps_busy_is_closed_by_the_exit_handler(
    begun, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(step, "_LOCK_SECS", 0.2)
    trainer = Component("Trainer", begun, tmp_path, ValueError("odd"))
    with begun.lock.writing.held(holder="the step Pusher"):
        assert trainer.main() == 1
    said = capsys.readouterr().err
    assert "waited 0.2 s for the lock of the root" in said
    assert "the step Pusher" in said
    assert said.splitlines()[-1].startswith("Trainer: ValueError: odd")
    assert trainer.record().status == "running"
    end(begun)
    assert trainer.record().reason.startswith("Trainer: ValueError: odd")


def test_the_files_of_a_run_whose_record_failed_after_the_push_stay(begun, killed, capsys):
    version = begun.serving / "5"
    version.mkdir(parents=True)
    write_version(Provenance(killed.run_id, str(begun)), str(version), str(begun.serving))
    folder = RunFolder(begun, "run-1")
    assert step.main(["Record", "--root", str(begun), "--run", "run-1", "--outcome", "none"]) == 1
    assert begun.records.read(killed.run_id).status == "pushed"
    end(begun)
    assert folder.read_run_id() == killed.run_id  # Record can be tried again
    outcome = json.dumps(asdict(RunOutcome("pushed", version="5")))
    assert step.main(["Record", "--root", str(begun), "--run", "run-1", "--outcome", outcome]) == 0
    assert begun.records.read(killed.run_id).reason is None


def test_a_step_at_work_gives_signs_of_life(begun, tmp_path):
    trainer = Component("Trainer", begun, tmp_path, ValueError("odd"), None)
    folder, seen = RunFolder(begun, "run-1").path, []
    run = trainer.run

    def look(*arguments):
        seen.append([file.name for file in folder.glob("*.alive")])
        return run(*arguments)

    trainer.run = look
    assert [trainer.main(), trainer.main()] == [1, 0]
    assert seen == [["Trainer.alive"]] * 2
    assert not list(folder.glob("*.alive"))


@pytest.mark.parametrize(
    ("retries", "tries", "code", "naps"),
    [
        ("0", [TimeoutError("lost")], 1, []),
        ("2", [TimeoutError("lost"), None], 0, [30]),
        ("2", [TimeoutError("lost"), OSError(errno.ESTALE, "stale"), None], 0, [30, 60]),
        ("2", [TimeoutError("lost"), TimeoutError("lost"), TimeoutError("left")], 1, [30, 60]),
        ("2", [ValueError("a bug")], 1, []),
        ("2", [TimeoutError("lost"), ValueError("a bug")], 1, [30]),
    ],
)
def test_a_step_is_tried_again_after_an_error_that_may_pass(
    begun, tmp_path, monkeypatch, capsys, retries, tries, code, naps
):
    monkeypatch.setenv("ESTIMATOR_PIPELINES_RETRIES", retries)
    slept = []
    trainer = Component("Trainer", begun, tmp_path, *tries)
    assert trainer.main(sleep=slept.append) == code
    assert slept == naps
    said = capsys.readouterr().err
    assert said.count("this may pass. Retry") == len(naps)
    record = trainer.record()
    if code:
        last = tries[-1]
        assert record.reason.startswith(f"Trainer: {type(last).__name__}: {last}")
        assert record.notes == (f"note {len(tries)} of Trainer",)  # of the last try alone
    else:
        assert record.status == "running"
        assert RunFolder(begun, "run-1").failures() == []


def test_a_signal_ends_the_wait_for_a_retry(begun, tmp_path, monkeypatch, handles_signals):
    monkeypatch.setenv("ESTIMATOR_PIPELINES_RETRIES", "3")
    trainer = Component("Trainer", begun, tmp_path, TimeoutError("lost"))
    assert trainer.main(sleep=lambda secs: signal.raise_signal(signal.SIGTERM)) == 1
    assert trainer.record().status == "interrupted"


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


def test_a_component_can_import_the_module_file_by_its_name(begun, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    module = tmp_path / "code" / "module_of_a_file.py"
    module.parent.mkdir()
    module.write_text("WORD = 'here'\n")
    code = {"source": {"module_file": str(module)}, "digests": {}}
    plan = ComponentPlan("Transform", {"type": "none"}, {}, "", code=code)
    arguments = component_arguments("Transform", begun, tmp_path)
    arguments[arguments.index("0" * 64)] = write_component_plan(begun, plan)
    words = []

    def run_component(*_):
        words.append(importlib.import_module("module_of_a_file").WORD)
        return {}

    monkeypatch.setattr(component_step, "run_component", run_component)
    assert step.main(arguments) == 0
    assert words == ["here"]


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


# A training that is in the middle of a long step; the step's folder belongs to a run that `Plan` has begun.
TRAINING = """
import sys, time
from components.interruption import interruption
from pipelines.kubeflow import step
from pipelines.terminal.signals import raise_at_signals

def work(self):
    interruption.is_held = sys.argv[1] == "holds"
    print("at work", flush=True)
    time.sleep(60)

step._Attempt.run = work
arguments = ["Trainer", "--root", sys.argv[2], "--run", "some-run"]
raise_at_signals(lambda: step.keep_interruption(arguments))
sys.exit(step.main(arguments))
"""


@pytest.mark.parametrize("training", ["ends", "holds"])
def test_a_signal_that_has_ended_the_reader_of_the_output_is_recorded_at_once(tmp_path, training):
    """KFP's launcher dies of the same signal, and Argo kills the container about a second later."""
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINING, training, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=Path(__file__).parents[3],
    )
    try:
        while b"at work" not in (line := process.stdout.readline()):
            assert line, "it has ended"
        process.stdout.close()
        process.terminate()
        folder = RunFolder(Root(tmp_path), "some-run")
        deadline = time.monotonic() + 15  # on a busy machine
        while not folder.failures() and time.monotonic() < deadline:
            time.sleep(0.01)
        (end,) = folder.failures()
        assert (end.component, end.is_interrupted) == ("Trainer", True)
        if training == "holds":
            assert process.poll() is None  # it had not even begun to end
        else:
            assert process.wait(30) == 1
    finally:
        process.kill()
        process.wait()
