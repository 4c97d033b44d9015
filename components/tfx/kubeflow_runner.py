"""Packages a component's module file if TFX's KubeflowV2DagRunner compiles the pipeline, and only then.

TFX's runners build a wheel of each module file. On one machine our Trainer reads the file directly, because
building a wheel takes seconds and needs pip. A container can't read the file.
"""

import contextvars
import functools
import types
from pathlib import Path
from typing import Any

from tfx.components.util import udf_utils

from components.tfx.after_import import after_import

_MODULES = ("tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner",)
_is_compiling = contextvars.ContextVar("_is_compiling", default=False)


class ModuleFileInWheel(udf_utils.UserModuleFilePipDependency):
    """TFX's packaging of a component's module file, in a pipeline that is compiled for containers."""

    def resolve(self, pipeline_root: str) -> str | None:
        """Returns the path of the wheel, before any component runs; None leaves the component as it is."""
        if _is_compiling.get():
            return super().resolve(pipeline_root)
        file = self.component.spec.exec_properties[self.module_file_key]
        is_local = isinstance(file, str) and "://" not in file
        if is_local and not Path(file).expanduser().is_file():
            raise FileNotFoundError(
                f"{self.component.id}: {self.module_file_key} does not exist. Received: {file!r} "
                f"({Path(file).expanduser().resolve()})"
            )
        return None


def _mark_compilation(module: types.ModuleType) -> None:
    run = module.KubeflowV2DagRunner.run

    @functools.wraps(run)
    def run_marked(*arguments: Any, **keywords: Any) -> Any:
        token = _is_compiling.set(True)
        try:
            return run(*arguments, **keywords)
        finally:
            _is_compiling.reset(token)

    module.KubeflowV2DagRunner.run = run_marked


after_import(_MODULES, _mark_compilation)
