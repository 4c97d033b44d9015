import importlib
import sys

import lightgbm
import pytest

from estimator_core.boosted_trees import library


def test_it_is_lightgbm():
    assert library.lightgbm() is lightgbm


def test_the_error_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # as if it was not there
    with pytest.raises(ImportError, match=r"pip install 'estimator-pipelines\[boosted-trees\]'"):
        library.lightgbm()


def test_a_system_without_openmp(monkeypatch):
    def fails(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", fails)
    with pytest.raises(ImportError, match=r"libgomp.so.1.*apt-get install libgomp1"):
        library.lightgbm()
