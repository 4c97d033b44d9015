import importlib
import sys
import types

import pytest

from components.tfx import compat as tfx_compat

needed = pytest.mark.skipif(not tfx_compat.is_needed(), reason="this TFDV needs no stand-in")


@needed
def test_the_stand_in_refuses_sql_and_names_the_fix():
    sql_util = importlib.import_module("tfx_bsl.arrow.sql_util")
    with pytest.raises(ImportError, match=r"SlicingSpec\(feature_keys=.*SELECT 1"):
        sql_util.RecordBatchSQLSliceQuery("SELECT 1", None)


def test_tfdv_imports_with_a_stand_in_only_where_it_needs_one():
    import tensorflow_data_validation

    # Python 3.12 and newer have the TFDV that TFX 1.21 was released with.
    version = "1.16.1" if sys.version_info < (3, 12) else "1.21.0"
    assert tensorflow_data_validation.__version__ == version
    assert tfx_compat.is_needed() == (version == "1.16.1")
    if tfx_compat.is_needed():
        assert "tfx_bsl.arrow.sql_util" in sys.modules


def test_installing_twice_adds_one_finder():
    finders = len(sys.meta_path)
    tfx_compat.install()
    assert len(sys.meta_path) == finders


def test_a_real_module_wins(monkeypatch, tmp_path):
    real = types.ModuleType("tfx_bsl.arrow.sql_util")

    class Finder:
        @staticmethod
        def find_spec(fullname, path, target=None):
            if fullname != real.__name__:
                return None
            loader = types.SimpleNamespace(create_module=lambda spec: real, exec_module=lambda module: None)
            return importlib.machinery.ModuleSpec(fullname, loader)

    monkeypatch.delitem(sys.modules, real.__name__, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert importlib.import_module(real.__name__) is real
    monkeypatch.delitem(sys.modules, real.__name__)
