"""The tutorial shows the real output of the programs, and its configuration is a valid one."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from pipelines.config.load import load_config

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()


def test_the_generator_prints_what_is_shown(tmp_path):
    command, output = re.search(
        r"```sh\npython (-m pipelines\.examples\.taxi\.generate .*)\n```\n```\n(.*\n)```", TUTORIAL
    ).groups()
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=tmp_path, env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == output
    assert (tmp_path / "taxi.csv").exists()


def test_the_configuration_is_valid(tmp_path):
    file = tmp_path / "payments.toml"
    file.write_text(re.search(r"```toml\n(.*?)```", TUTORIAL, re.DOTALL)[1])
    config = load_config(file, settings=["trainer.train_steps=500"])
    assert (config.name, config.columns) == ("payments", {"tips": "ignore"})
    assert config.trainer.hidden_units == (64, 32)
    assert config.trainer.train_steps == 500
    assert config.evaluator.thresholds[0].max_regression == 0.01
