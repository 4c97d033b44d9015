"""Runs the contestants of `speed.py`, each in its own process, and keeps the measurements."""

import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import speed_table
from benchmarks.speed_table import Run
from benchmarks.speed_works import Contestant, Work

FOLDER = pathlib.Path(__file__).resolve().parent
PROJECT = FOLDER.parent
CACHE = PROJECT / ".bench"
RESULTS = CACHE / "speed.json"


Pythons = Mapping[str, str]
"""Python by the name of the environment; other environments use the Python that runs this."""

# Packages in the environments that the benchmark creates, by name.
PACKAGES = {
    "reference": ("tensorflow-cpu==2.15.1", "tensorflow-estimator==2.15.0"),
    "plain": ("tensorflow",),  # the release that is installed here
}


def environment_python(name: str, uv: str) -> str:
    """Returns the Python of an environment, which is created the first time."""
    script = PROJECT / "scripts" / "bench_environment.sh"
    CACHE.mkdir(exist_ok=True)
    packages = [
        package if "==" in package else f"{package}=={importlib.metadata.version(package)}"
        for package in PACKAGES[name]
    ]
    command = [script, uv, CACHE / name, *packages]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        other = "; --reference-python names another Python" if name == "reference" else ""
        raise SystemExit(f"No environment of {' '.join(packages)} could be made{other}")
    return done.stdout.strip()


def run_contestant(work: str, contestant: Contestant, pythons: Pythons, *options: str) -> Any:
    """Returns the output of `contestant.py`."""
    interpreter = pythons.get(contestant.environment or contestant.kind, sys.executable)
    command = [interpreter, str(FOLDER / "contestant.py"), work, contestant.kind]
    command += ["--settings", json.dumps(dict(contestant.settings)), *options]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "SPEED_CACHE": str(CACHE)}
    CACHE.mkdir(exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, env=environment)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode} of: {' '.join(command)}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(work: Work, rounds: int, pythons: Pythons) -> list[Run]:
    """Returns the runs of all contestants, round by round."""
    runs, checks = [], {}
    for number in range(rounds):
        for contestant in work.contestants:
            print(f"({work.letter}) {number + 1}/{rounds} {contestant.name}", file=sys.stderr)
            count = contestant.count or work.count
            options = ["--count", str(count)] if count else []
            options += ["--check"] if number == 0 else []
            run = run_contestant(contestant.work or work.work, contestant, pythons, *options)
            runs.append(Run(contestant.name, run["secs"], run["processor_secs"]))
            if run.get("check"):
                checks[contestant.name] = run["check"]
        if number == 0 and checks:
            differences = speed_table.differences(work, checks)
            if differences:
                raise SystemExit(f"({work.letter}) Not the same work. " + "; ".join(differences))
    return runs


def load_results() -> dict[str, Any]:
    """Returns the results so far, by the letter of the work, "growth" or "memory"."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def save(key: str, measured: Any) -> None:
    """Replaces the results under `key`, with the date and the load of the machine."""
    results = load_results()
    results[key] = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "load": round(os.getloadavg()[2], 1),
        "measured": measured,
    }
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    part.replace(RESULTS)


def save_runs(work: Work, runs: Sequence[Run]) -> None:
    """Keeps the runs of a piece of work."""
    save(work.letter, [dataclasses.asdict(run) for run in runs])


def machine(cpuinfo: str) -> str:
    """Returns a description of the machine."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    names = [value.strip() for name, _, value in lines if name.strip() == "model name"]
    return f"{len(os.sched_getaffinity(0))} cores, {names[0] if names else platform.machine()}"


def conditions(results: dict[str, Any], works: Sequence[Work]) -> str:
    """Returns time, machine, rounds and load of the measurements, as a sentence."""
    measured = [(work, results[work.letter]) for work in works if work.letter in results]
    dates = sorted(result["date"] for _, result in measured)
    loads = sorted(result["load"] for _, result in measured)
    rounds = sorted(
        sum(run["contestant"] == work.contestants[0].name for run in result["measured"])
        for work, result in measured
    )
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    return (
        f"Measured {dates[0]} to {dates[-1]} UTC on {machine(cpuinfo.read_text())}, under a load of "
        f"{loads[0]} to {loads[-1]}; {_range(rounds)} rounds."
    )


def _range(numbers: Sequence[int]) -> str:
    return f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"
