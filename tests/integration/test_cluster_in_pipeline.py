"""A pipeline that trains in a cluster: a task fails, the run is interrupted, and it goes on to the push."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STEPS = 3000  # each takes 0.1 s while there is a file `slow`
TASKS = ["chief-0", "ps-0", "the-run", "worker-0"]


@pytest.fixture
def folder(tmp_path):
    """The folder in which the module reports on its tasks and reads requests of the test."""
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path, folder):
    """Returns a function that starts the pipeline; it is ended with the test."""
    rows = "".join(f"{number}.5,{int(number > 90)}\n" for number in range(200))
    (tmp_path / "data.csv").write_text("x,y\n" + rows)
    command = [sys.executable, "-m", "pipelines", "run", "--root", tmp_path / "root"]
    settings = (
        f"data.path={tmp_path / 'data.csv'}",
        "data.label=y",
        "module.path=tests.integration.cluster_module",
        f"trainer.train_steps={STEPS}",
        "trainer.workers=1",
        "trainer.ps=1",
        f'trainer.custom_config={{folder = "{folder}", steps = "not used"}}',
        'evaluator.thresholds=[{metric="binary_accuracy", lower=0.0}]',
        "evaluator.default_checks=false",  # a few steps teach little
    )
    started = []

    def start_it(*options):
        for setting in () if options else settings:
            options += ("--set", setting)
        process = subprocess.Popen(
            [*command, *options], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start_it
    for process in started:
        process.kill()
        process.wait()


def ended(process):
    """Returns exit code, last line and output, once a run has ended."""
    stdout, stderr = process.communicate(timeout=600)
    print(stderr)
    return process.returncode, json.loads(stdout.splitlines()[-1]), stderr


def made_steps(folder, task):
    path = folder / f"steps.{task}"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def check_that_all_have_ended(folder):
    files = list(folder.glob("pid.*"))
    assert sorted(file.name.split(".")[1] for file in files) == TASKS
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.suffix[1:]), 0)
        file.unlink()


@pytest.mark.slow
@pytest.mark.timeout(1800)  # three runs of a pipeline
def test_a_cluster_fails_is_interrupted_and_goes_on(start, folder, tmp_path):
    (folder / "fail").touch()
    (folder / "slow").touch()
    code, line, shown = ended(start())
    assert (code, line["status"]) == (1, "failed")
    source = REPOSITORY / "tests/integration/cluster_module.py"
    number = source.read_text().split("\n").index(_raise_in(source)) + 1
    assert line["reason"] == (
        f"Trainer: ArithmeticError: the price of row 7 is missing ({source}, line {number})"
    )
    log = (tmp_path / f"root/logs/{line['run_id']}.log").read_text()
    assert "worker 0 failed. Its traceback:" in log
    (logs,) = tmp_path.glob("root/artifacts/Trainer/*/unfinished/*/logs")
    assert f"The log of each task is in {logs}" in log
    assert sorted(path.name for path in logs.iterdir()) == ["chief-0.log", "ps-0.log", "worker-0.log"]
    check_that_all_have_ended(folder)

    (folder / "fail").unlink()
    failed_after = max(made_steps(folder, "chief-0"), default=0)
    process = start("--resume")
    end = time.monotonic() + 300
    while max(made_steps(folder, "chief-0"), default=0) < failed_after + 20:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code, line, _ = ended(process)
    assert (code, line["status"]) == (130, "interrupted")
    check_that_all_have_ended(folder)

    (folder / "slow").unlink()
    interrupted_after = max(made_steps(folder, "chief-0"))
    code, line, shown = ended(start("--resume"))
    assert (code, line["status"]) == (0, "pushed")
    (continued_at,) = re.findall(r"continues from the checkpoint of step (\d+)", shown)
    # It is of the last step of all that the chief saw, or of one that it did not see.
    assert int(continued_at) in range(interrupted_after, interrupted_after + 4)
    assert f"evaluation at step {STEPS}" in shown.replace(f"step {STEPS + 1}", f"step {STEPS}")
    check_that_all_have_ended(folder)
    (logs,) = tmp_path.glob("root/artifacts/Trainer/*/model_run/logs")
    log = (tmp_path / f"root/logs/{line['run_id']}.log").read_text()
    assert f"The tasks' logs are in {logs}" in log


def _raise_in(source):
    (line,) = (text for text in source.read_text().split("\n") if "raise ArithmeticError" in text)
    return line
