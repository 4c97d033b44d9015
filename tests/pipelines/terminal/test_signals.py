"""A signal at any moment of a run ends in the line of JSON and exit code 130."""

import contextlib
import gc
import json
import signal
import subprocess
import sys
import time

import pytest

from components.interruption import interruption
from pipelines.terminal import signals

# Sends a signal to itself when a module is about to be imported: the order of imports is known.
PROGRAM = """
import os, signal, sys

class Sender:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), getattr(signal, number))

module, number = sys.argv[1:3]
sys.argv[1:3] = []
sys.meta_path.insert(0, Sender())
from pipelines.__main__ import main
main()
"""


def run_and_interrupt(module, number, *arguments):
    words = [sys.executable, "-c", PROGRAM, module, number, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


MOMENTS = ["pipelines.cli.app", "typer", "pipelines.runs.plan.run_plan", "pydantic", "pyarrow", "tfx"]
SLOW = {("pyarrow", "SIGINT"), ("tfx", "SIGINT")}  # both import TensorFlow before


@pytest.mark.more
@pytest.mark.parametrize(
    ("module", "number"),
    [
        pytest.param(module, number, marks=pytest.mark.slow if (module, number) in SLOW else ())
        for module in MOMENTS
        for number in ("SIGINT", "SIGTERM")
    ],
)
def test_a_signal_ends_in_the_last_line(data, tmp_path, module, number):
    words = ("run", "--data", data, "--label", "y", "--root", tmp_path / "root")
    result = run_and_interrupt(module, number, *words)
    assert result.returncode == 130
    assert "Traceback" not in result.stderr
    (line,) = result.stdout.splitlines()
    line = json.loads(line)
    assert set(line) >= {"run_id", "status", "version", "metrics", "report"}
    assert (line["status"], line["version"]) == ("interrupted", None)
    assert (line["run_id"] is not None) == (module == "tfx")  # by then there is a record


def test_other_commands_have_no_last_line(tmp_path):
    result = run_and_interrupt("typer", "SIGTERM", "runs", "--json", "--root", tmp_path)
    assert (result.returncode, result.stdout) == (130, "")


def signal_in_a_destructor():
    class Dropping:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)
            self.reached = [0 for _ in range(3)]  # the handler is called between instructions

    Dropping()


def signal_in_a_collection():
    def call_back(phase, info):
        gc.callbacks.remove(call_back)
        signal.raise_signal(signal.SIGTERM)
        call_back.reached = [0 for _ in range(3)]

    gc.callbacks.append(call_back)
    gc.collect()


def signal_that_code_suppresses():
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGTERM)


def run_on():
    time.sleep(20)
    raise TimeoutError("the signal was lost")


@pytest.mark.parametrize(
    "drop", [signal_in_a_destructor, signal_in_a_collection, signal_that_code_suppresses]
)
def test_an_exception_that_is_dropped_is_raised_again(handles_signals, drop, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)  # pytest's takes time
    drop()
    assert interruption.reason == "SIGTERM"
    with handles_signals():
        run_on()


def test_nothing_is_raised_again_while_the_exception_is_under_way(handles_signals):
    ended = []
    with handles_signals():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            time.sleep(0.3)  # fifteen looks
            ended.append(True)
    assert ended


def test_a_training_has_some_time_to_save(handles_signals, monkeypatch):
    monkeypatch.setattr(signals, "_MAX_HELD_SECS", 0.3)
    interruption.is_held = True
    start = time.monotonic()
    signal.raise_signal(signal.SIGTERM)
    assert interruption.reason == "SIGTERM"
    with handles_signals():
        run_on()
    assert 0.3 <= time.monotonic() - start < 5


def test_a_run_that_has_ended_is_not_interrupted(handles_signals):
    signals.ignore_further_signals()
    signal.raise_signal(signal.SIGTERM)
    time.sleep(0.1)
    assert interruption.reason == "SIGTERM"


SIGNALLED_TWICE = """
import signal, sys
from pipelines.terminal import signals

signals._SAME_SECS = float(sys.argv[1])
signals.raise_at_signals()
try:
    signal.raise_signal(signal.SIGTERM)
finally:
    signal.raise_signal(signal.SIGINT)
    print("went on", flush=True)
"""


@pytest.mark.parametrize("same_secs", [0, 600])
def test_a_second_signal_ends_the_process_at_once_unless_it_is_the_same_one(same_secs):
    result = subprocess.run(
        [sys.executable, "-c", SIGNALLED_TWICE, str(same_secs)], capture_output=True, text=True, check=False
    )
    if same_secs:
        assert (result.stdout, "RunInterruptedError: SIGTERM" in result.stderr) == ("went on\n", True)
    else:
        assert (result.returncode, result.stdout, result.stderr) == (130, "", "")
