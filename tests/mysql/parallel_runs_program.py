"""Starts runs of several roots at once, kills one, and goes on with it. Prints how they ended.

A process imports TensorFlow and TFX once and forks for each run.

  python parallel_runs_program.py FOLDER URL NUMBER_OF_RUNS
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pipelines.runners.component_launcher

import components
import pipelines.__main__
import pipelines.cli.app
import pipelines.definitions.csv_to_serving
import pipelines.runs.run

assert components

KILLED = 2


def start(folder, number, *further):
    """Starts a run, and returns its process; its output is in `NUMBER.out` and `NUMBER.err`."""
    child = os.fork()
    if child:
        return child
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(
            os.open(folder / f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor
        )
    sys.argv[1:] = [
        "run", "--root", str(folder / f"root-{number}"), "--data", str(folder / "trips.csv"), "--label", "y",
        "--set", "name=trips", "--set", f"metadata.url={sys.argv[2]}", "--set", "trainer.model=linear",
        "--set", "trainer.train_steps=40", "--set", f"trainer.seed={number}",
        "--set", "evaluator.default_checks=false", "--set",
        'evaluator.thresholds=[{metric = "auc", lower = 0.01}]', *further,
    ]  # fmt: skip
    try:
        pipelines.__main__.main()
    except SystemExit as error:
        os._exit(error.code or 0)
    os._exit(1)


def components_of(folder, number):
    """Returns the components that the record of a run has."""
    for file in (folder / f"root-{number}" / "runs").glob("*.json"):
        return [part["name"] for part in json.loads(file.read_text())["components"]]
    return []


def main():
    folder, number_of_runs = Path(sys.argv[1]), int(sys.argv[3])
    children = {number: start(folder, number) for number in range(number_of_runs)}
    while "StatisticsGen" not in components_of(folder, KILLED):
        if os.waitpid(children[KILLED], os.WNOHANG)[0]:
            sys.exit("The run that was to be killed has ended.")
        time.sleep(0.05)
    os.kill(children[KILLED], signal.SIGKILL)
    codes = {
        number: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for number, child in children.items()
    }
    resumed = start(folder, KILLED, "--resume")
    resumed_code = os.waitstatus_to_exitcode(os.waitpid(resumed, 0)[1])
    print(json.dumps({"codes": codes, "resumed": resumed_code}))


main()
