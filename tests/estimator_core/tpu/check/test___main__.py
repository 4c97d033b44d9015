"""The command of check_for_tpu."""

import runpy
import sys

import pytest


def run_command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["check", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("estimator_core.tpu.check", run_name="__main__")
    return ended.value.code


@pytest.mark.more
def test_the_command_reports_that_a_model_compiles(compiler, monkeypatch, capsys):
    module = "tests.estimator_core.tpu.check.models"
    assert run_command(monkeypatch, f"{module}:regressor_and_vectors", "--mode", "eval") == 0
    assert capsys.readouterr().out.startswith("eval: compiles for v5e:2x2 (4 cores)\n")


def test_a_command_that_names_nothing(monkeypatch, capsys):
    assert run_command(monkeypatch, "tests.estimator_core.tpu.check.models:nothing") == 2
    assert "has no attribute 'nothing'" in capsys.readouterr().err
