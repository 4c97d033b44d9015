import importlib
import os
import sys

import lightgbm
import pytest

from estimator_core.boosted_trees import library


def test_it_is_lightgbm():
    assert library.lightgbm() is lightgbm


@pytest.mark.parametrize(("given", "seen"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_sleep_while_they_wait_unless_the_environment_says_otherwise(monkeypatch, given, seen):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    policies = []
    with monkeypatch.context() as patch:
        patch.setattr(importlib, "import_module", lambda name: policies.append(os.environ["OMP_WAIT_POLICY"]))
        library.lightgbm()
    assert policies == [seen]
    assert os.environ.get("OMP_WAIT_POLICY") == given


def test_the_error_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # as if it was not there
    with pytest.raises(ImportError, match="run `pip install lightgbm`"):
        library.lightgbm()


def test_a_system_without_openmp(monkeypatch):
    def fails(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", fails)
    with pytest.raises(ImportError, match=r"libgomp.so.1.*apt-get install libgomp1"):
        library.lightgbm()
