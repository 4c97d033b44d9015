"""Makes TFDV 1.16 importable next to tfx-bsl 1.21, in this process and in Beam workers.

TFDV 1.16.1, which is installed on systems that have no wheel of TFDV 1.21 (docs/dependencies.md), imports
`tfx_bsl.arrow.sql_util`, which tfx-bsl has dropped. The module only serves SQL slicing, so a stand-in that
refuses SQL slicing is enough. Beam workers in other processes need it too: pass
`--beam_plugins=components.tfx.compat`. With TFDV 1.21 this module does nothing.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Sequence

_SQL_UTIL = "tfx_bsl.arrow.sql_util"

BEAM_PLUGIN_ARG = f"--beam_plugins={__name__}"
"""The Beam pipeline option that installs the stand-in in worker processes."""


class RecordBatchSQLSliceQuery:
    """Stands in for tfx-bsl's class of this name and refuses to work."""

    def __init__(self, sql: str, arrow_schema: object) -> None:
        # Not a RuntimeError: TFDV takes that for a query without matches and carries on.
        raise ImportError(
            "SQL slicing is not part of tfx-bsl any more. Slice by feature instead: "
            f"SlicingSpec(feature_keys=[...]). Received: sql={sql!r}"
        )


class _SqlUtilFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Supplies `tfx_bsl.arrow.sql_util` if no other finder has it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _SQL_UTIL:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["RecordBatchSQLSliceQuery"] = RecordBatchSQLSliceQuery


def is_needed() -> bool:
    """Returns True if the installed TFDV imports a module that the installed tfx-bsl lacks."""
    try:
        version = importlib.metadata.version("tensorflow-data-validation")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(int(number) for number in version.split(".")[:2]) < (1, 21)


def install() -> None:
    """Registers the stand-in where TFDV needs it, after all other finders: a real module wins. Idempotent."""
    if is_needed() and not any(isinstance(finder, _SqlUtilFinder) for finder in sys.meta_path):
        sys.meta_path.append(_SqlUtilFinder())


install()
