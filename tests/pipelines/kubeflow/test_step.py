import errno
import importlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow import step
from pipelines.kubeflow.run_folder import RunFolder, StepEnd
from pipelines.kubeflow.steps import component_step, plan_step, record_steps
from pipelines.root import Root
from tests.pipelines.kubeflow.on_kubeflow import begin, make, planned
from tests.pushed_versions import serve_version


@pytest.fixture(autouse=True)
def run_id(monkeypatch):
    monkeypatch.setenv("KFP_RUN_ID", "run-1")


def plan_arguments(tmp_path, config_of):
    return [
        "Plan", "--root", str(tmp_path), "--run", "run-1", "--config",
        config_of().model_dump_json(), "--parameter", "trainer.train_steps", "70",
        "--key-of", "Trainer", str(tmp_path / "out" / "trainer"),
    ]  # fmt: skip


def test_plan_hands_on_the_keys_of_steps_and_values_may_begin_with_hyphens(tmp_path, config_of, monkeypatch):
    asked = []

    def plan(root, config, kubeflow_run, tasks):
        asked.append((root, config.trainer.train_steps, config.data.label, kubeflow_run, tasks))
        return {"Trainer": "abc", "RootSchema": "def"}

    monkeypatch.setattr(plan_step, "plan_on_kubeflow", plan)
    value = ["--parameter", "data.label", "-tips"]
    assert step.main([*plan_arguments(tmp_path, config_of), *value]) == 0
    assert asked == [(Root(tmp_path), 70, "-tips", "run-1", ["Trainer"])]
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
    assert run_step("End", tmp_path / "file") == 1
    said = capsys.readouterr().err
    assert "could not be saved" in said
    assert said.strip().splitlines()[-1].startswith("End: ValueError: odd")


def component_arguments(component, root):
    return [component, "--root", str(root), "--key", "any"]


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_step_without_a_plan_does_nothing(tmp_path, capsys, has_begun):
    """Its run is over, or it sees another folder than Plan."""
    root = Root(tmp_path / "root")
    if has_begun:
        RunFolder(root, "run-1").write_run("20260102-030405")
    assert step.main(component_arguments("Trainer", root)) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "every step mounts" in last
    assert "the run has ended" in last
    assert RunFolder(root, "run-1").failures()[0].component == "Trainer"
    assert not root.artifacts.exists()


class Component:
    """A component whose tries go as listed: an error, or None for success."""

    def __init__(self, name, root, *tries):
        self.root, self.name, self.tries = root, name, list(tries)
        self.seen = []  # record at the start of each try: its status and reason
        self.arguments = component_arguments(name, root)

    def run(self, root, folder, planned, component, start):
        (record,) = self.root.records.read_all()
        self.seen.append((record.status, record.reason))
        outcome = self.tries.pop(0)
        if isinstance(outcome, signal.Signals):
            signal.raise_signal(outcome)
        if outcome is not None:
            raise outcome
        make(root, planned.step(component))
        return StepEnd(component, 1.0)

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
    begin(root, killed, *(planned(name, killed.run_id) for name in ("Trainer", "Evaluator", "Check")))
    return root


def run_step(component, root, run="run-1"):
    return step.main([component, "--root", str(root), "--run", run])


def test_the_record_is_true_after_a_retry_in_which_the_exit_handler_does_not_run(begun, tmp_path):
    trainer = Component("Trainer", begun, ValueError("one"), ValueError("two"), None)
    assert trainer.main() == 1
    assert run_step("End", begun) == 0  # Argo keeps it: a Retry does not run it again
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
    assert run_step("Record", begun) == 0
    record = trainer.record()
    assert (record.status, record.reason) == ("finished", None)


def test_a_failure_counts_until_its_step_is_tried_again(begun, tmp_path):
    evaluator = Component("Evaluator", begun, ValueError("odd"), None)
    check = Component("Check", begun, ValueError("even"), None, None)
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


def test_a_run_whose_step_got_a_signal_is_interrupted(begun, tmp_path, handles_signals, monkeypatch):
    close = record_steps.close_failed_run

    def close_at_second_signal(*given):
        time.sleep(0.4)  # a signal that comes earlier counts as the same
        signal.raise_signal(signal.SIGTERM)
        close(*given)

    monkeypatch.setattr(record_steps, "close_failed_run", close_at_second_signal)
    trainer = Component("Trainer", begun, signal.SIGTERM)
    assert trainer.main() == 1
    assert trainer.record().status == "interrupted"
    assert "Trainer: stopped by a signal" in trainer.record().reason
    assert run_step("End", begun) == 0
    assert trainer.record().status == "interrupted"


def test_a_record_that_another_run_holds_is_closed_by_the_exit_handler(begun, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(step, "_LOCK_SECS", 0.2)
    trainer = Component("Trainer", begun, ValueError("odd"))
    with begun.lock.writing.held(holder="the step Pusher"):
        assert trainer.main() == 1
    said = capsys.readouterr().err
    assert "waited 0.2 s for the lock of the root" in said
    assert "the step Pusher" in said
    assert said.splitlines()[-1].startswith("Trainer: ValueError: odd")
    assert trainer.record().status == "running"
    assert run_step("End", begun) == 0
    assert trainer.record().reason.startswith("Trainer: ValueError: odd")


def test_the_files_of_a_run_whose_record_failed_after_the_push_stay(begun, killed, capsys):
    serve_version(begun.serving, 5, killed.run_id)
    folder = RunFolder(begun, "run-1")
    plan = folder.path / "plan.json"
    plan.rename(plan.with_suffix(".hidden"))
    assert run_step("Record", begun) == 1
    assert begun.records.read(killed.run_id).status == "pushed"
    assert run_step("End", begun) == 0
    assert folder.read_run_id() == killed.run_id  # Record can be tried again
    plan.with_suffix(".hidden").rename(plan)
    assert run_step("Record", begun) == 0
    assert begun.records.read(killed.run_id).status == "unchanged"  # no step has run


def test_a_damaged_plan_ends_the_record(begun, killed, capsys):
    plan = RunFolder(begun, "run-1").path / "plan.json"
    plan.write_text('{"steps": [')
    assert run_step("Record", begun) == 1
    assert f"{plan} cannot be read" in capsys.readouterr().err
    assert begun.records.read(killed.run_id).status == "failed"


def test_a_step_at_work_gives_signs_of_life(begun, tmp_path, monkeypatch):
    folder, seen = RunFolder(begun, "run-1").path, []
    run = Component.run

    def look(*arguments):
        seen.append([file.name for file in folder.glob("*.alive")])
        return run(*arguments)

    monkeypatch.setattr(Component, "run", look)
    trainer = Component("Trainer", begun, ValueError("odd"), None)
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
    trainer = Component("Trainer", begun, *tries)
    assert trainer.main(sleep=slept.append) == code
    assert slept == naps
    said = capsys.readouterr().err
    assert said.count("this may be temporary. Retry") == len(naps)
    record = trainer.record()
    if code:
        last = tries[-1]
        assert record.reason.startswith(f"Trainer: {type(last).__name__}: {last}")
    else:
        assert record.status == "running"
        assert RunFolder(begun, "run-1").failures() == []


def test_a_signal_ends_the_wait_for_a_retry(begun, tmp_path, monkeypatch, handles_signals):
    monkeypatch.setenv("ESTIMATOR_PIPELINES_RETRIES", "3")
    trainer = Component("Trainer", begun, TimeoutError("lost"))
    assert trainer.main(sleep=lambda secs: signal.raise_signal(signal.SIGTERM)) == 1
    assert trainer.record().status == "interrupted"


def test_a_step_whose_code_is_not_what_was_planned_does_nothing(tmp_path, killed, capsys):
    root = Root(tmp_path / "root")
    begin(root, killed, planned("Trainer", killed.run_id, code={"libraries": "of another image"}))
    assert step.main(component_arguments("Trainer", root)) == 1
    assert "the libraries changed after the step Plan" in capsys.readouterr().err


def test_a_component_can_import_the_module_file_by_its_name(tmp_path, killed, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    module = tmp_path / "code" / "module_of_a_file.py"
    module.parent.mkdir()
    module.write_text("WORD = 'here'\n")
    root = Root(tmp_path / "root")
    begin(root, killed, planned("Transform", killed.run_id), definition=None, user_files=(str(module),))
    words = []

    def run_component(*_):
        words.append(importlib.import_module("module_of_a_file").WORD)
        return StepEnd("Transform", 1.0)

    monkeypatch.setattr(component_step, "run_component", run_component)
    assert step.main(component_arguments("Transform", root)) == 0
    assert words == ["here"]


def test_a_try_that_failed_does_not_count_when_the_next_one_went_well(tmp_path, config_of, monkeypatch):
    RunFolder(Root(tmp_path), "run-1").write_step(StepEnd("Plan", 1.0, "no such file"))
    monkeypatch.setattr(plan_step, "plan_on_kubeflow", lambda *_: {"Trainer": "abc"})
    assert step.main(plan_arguments(tmp_path, config_of)) == 0
    assert RunFolder(Root(tmp_path), "run-1").failures() == []


def test_end_says_how_the_run_ended(tmp_path, killed, capsys):
    root = tmp_path / "root"
    RunFolder(Root(root), "run-1").write_run(killed.run_id)
    assert run_step("End", root) == 0
    assert f"run {killed.run_id}: failed" in capsys.readouterr().err
    assert run_step("End", root, "run-2") == 0
    assert "before its record was written" in capsys.readouterr().err


# A training that is in the middle of a long step; the step's folder belongs to a run that `Plan` has begun.
TRAINING = """
import sys, time
from components.interruption import interruption
from pipelines.kubeflow import step
from pipelines.terminal.signals import raise_at_signals

def work(args, start):
    interruption.is_held = sys.argv[1] == "holds"
    print("at work", flush=True)
    time.sleep(60)

step._component = work
arguments = ["Trainer", "--root", sys.argv[2], "--run", "some-run"]
raise_at_signals(lambda: step.keep_interruption(arguments))
sys.exit(step.main(arguments))
"""


@pytest.mark.more
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
