"""The tutorial shows the real output of the programs, and its configuration is a valid one."""

import re
import shlex
import subprocess
import sys

from pipelines.config.load import load_config
from tests.docs.markdown import ROOT, blocks, read

TUTORIAL = read("docs/tutorial.md")


def test_the_generator_prints_what_is_shown(tmp_path):
    pattern = r"```sh\npython (-m pipelines\.examples\.taxi\.generate .*)\n```\n```\n(.*\n)```"
    command, output = re.search(pattern, TUTORIAL).groups()
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == output
    assert (tmp_path / "taxi.csv").exists()


def test_the_configuration_has_the_settings_of_the_text(tmp_path):
    (tmp_path / "payments.toml").write_text(blocks(TUTORIAL, "toml")[0])
    config = load_config(tmp_path / "payments.toml", settings=["trainer.train_steps=500"])
    assert (config.name, config.columns) == ("payments", {"tips": "ignore"})
    assert config.trainer.hidden_units == (64, 32)
    assert config.trainer.train_steps == 500
    assert config.evaluator.thresholds[0].max_regression == 0.01
