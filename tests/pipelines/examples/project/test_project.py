"""The project that `init` makes: its own test, and a run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.examples.taxi import generate

PROJECT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def folder(warm_command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made_by_init") / "trips"
    assert warm_command("init", folder).returncode == 0
    return folder


@pytest.mark.slow
def test_its_own_test_passes(folder):
    command, environment = [sys.executable, "-m", "unittest"], {**os.environ, "PYTHONPATH": str(PROJECT)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Ran 2 tests" in ran.stderr) == (0, True), ran.stderr[-3000:]


@pytest.mark.slow
def test_its_run_pushes_a_model_that_has_learned(folder, warm_command, tmp_path):
    ran = warm_command("run", "--config", "pipeline.toml", cwd=folder)
    assert ran.returncode == 0, ran.stderr[-3000:]
    outcome = json.loads(ran.stdout.splitlines()[-1])
    assert outcome["status"] == "pushed"
    best = generate.write_csv(tmp_path / "trips.csv", rows=6_000, seed=1)["best_auc"]
    assert (tmp_path / "trips.csv").read_bytes() == (folder / "data" / "trips.csv").read_bytes()
    assert best - 0.06 < outcome["metrics"]["auc"] < best + 0.04
    version = folder / "pipeline_root" / "serving" / outcome["version"]
    assert (version / "saved_model.pb").is_file()
