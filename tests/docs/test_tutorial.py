"""The tutorial shows the real output of the programs, and the configurations and metrics are valid."""

import re
import shlex
import subprocess
import sys

from pipelines.config.load import load_config
from pipelines.config.metrics import METRICS, resolve_metric
from tests.docs.markdown import ROOT, blocks, read

TUTORIAL, GATE = read("docs/tutorial.md"), read("docs/gate.md")


def test_the_generator_prints_what_is_shown(tmp_path):
    pattern = r"```sh\npython (-m pipelines\.examples\.taxi\.generate .*)\n```\n```\n(.*\n)```"
    command, output = re.search(pattern, TUTORIAL).groups()
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == output
    assert (tmp_path / "taxi.csv").exists()


KINDS = {
    "two classes": ["binary"],
    "several classes": ["multi-class"],
    "both": ["binary", "multi-class"],
    "one class": ["binary", "multi-class"],
    "a number": ["regression"],
    "two classes or a number": ["binary", "regression"],
    "all": ["binary", "multi-class", "regression"],
}


def test_all_metrics_are_listed_with_the_problems_that_they_are_for():
    table = GATE.partition("| for | metrics |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [re.fullmatch(r"\| (.*) \| (.*) \|", row).groups() for row in table.splitlines()]
    listed = [
        (name, kind) for row, names in rows for name in re.findall("`(.*?)`", names) for kind in KINDS[row]
    ]
    assert [resolve_metric(name, kind, "") for name, kind in listed] == [name for name, _ in listed]
    fitting = [(name, kind) for name in METRICS for kind in METRICS[name].problem_types]
    assert set(fitting) <= {(name.partition("@")[0], kind) for name, kind in listed}


def test_a_threshold_of_a_class_and_a_slice(tmp_path):
    (text,) = (block for block in blocks(GATE, "toml") if "class =" in block)
    (tmp_path / "c.toml").write_text(text)
    (bound,) = load_config(tmp_path / "c.toml", "d.csv", "y").evaluator.thresholds
    assert (bound.class_, bound.slice_) == ("late", {"city": "Oslo", "day": "Mon"})


def test_the_configuration_has_the_settings_of_the_text(tmp_path):
    (tmp_path / "payments.toml").write_text(blocks(TUTORIAL, "toml")[0])
    config = load_config(tmp_path / "payments.toml", settings=["trainer.train_steps=500"])
    assert (config.name, config.columns) == ("payments", {"tips": "ignore"})
    assert config.trainer.hidden_units == (64, 32)
    assert config.trainer.train_steps == 500
    assert config.evaluator.thresholds[0].max_regression == 0.01
