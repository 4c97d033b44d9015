import importlib
import sys
import types

import pytest

from components.tfx import compat as tfx_compat


def test_the_stand_in_refuses_sql_and_names_the_fix() -> None:
    sql_util = importlib.import_module("tfx_bsl.arrow.sql_util")
    with pytest.raises(ImportError, match=r"SlicingSpec\(feature_keys=.*SELECT 1"):
        sql_util.RecordBatchSQLSliceQuery("SELECT 1", None)


def test_tfdv_imports_in_its_pinned_version() -> None:
    import tensorflow_data_validation

    assert tensorflow_data_validation.__version__ == "1.16.1"


def test_installing_twice_adds_one_finder() -> None:
    finders = len(sys.meta_path)
    tfx_compat.install()
    assert len(sys.meta_path) == finders


def test_a_real_module_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    real = types.ModuleType("tfx_bsl.arrow.sql_util")

    class Finder:
        @staticmethod
        def find_spec(fullname: str, path: object, target: object = None) -> object:
            if fullname != real.__name__:
                return None
            loader = type(
                "Loader",
                (),
                {
                    "create_module": staticmethod(lambda spec: real),
                    "exec_module": staticmethod(lambda module: None),
                },
            )
            return importlib.machinery.ModuleSpec(fullname, loader)

    monkeypatch.delitem(sys.modules, real.__name__, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert importlib.import_module(real.__name__) is real
    monkeypatch.delitem(sys.modules, real.__name__)
