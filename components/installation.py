"""Makes TFX's names resolve to our components: `components.install()`.

A class can be imported from several modules of TFX, and by its path in the command of a container. Each is
replaced in the module that defines it, right after that module is imported, so that later imports of the
class get ours. Nothing is imported before it is needed.
"""

import importlib
import logging
import sys
import types

import estimator_core
from components.beam.worker_modules import worker_modules
from components.tfx.after_import import after_import

_LOGGER = logging.getLogger(__name__)

_CLOUD = "tfx.extensions.google_cloud_ai_platform"
_CLOUD_REPLACEMENTS = "components.tfx.cloud"

# A module of TFX, a name in it, and the module of ours that has this name.
_REPLACED = [
    (f"tfx.components.{stock}", name, f"components.{ours}")
    for stock, name, ours in (
        ("example_gen.csv_example_gen.component", "CsvExampleGen", "example_gen.component"),
        ("example_gen.csv_example_gen.executor", "Executor", "example_gen.executor"),
        ("statistics_gen.component", "StatisticsGen", "statistics_gen.component"),
        ("statistics_gen.executor", "Executor", "statistics_gen.executor"),
        ("schema_gen.import_schema_gen.component", "ImportSchemaGen", "import_schema_gen.component"),
        ("example_validator.component", "ExampleValidator", "example_validator.component"),
        ("example_validator.executor", "Executor", "example_validator.executor"),
        ("transform.component", "Transform", "transform.component"),
        ("transform.executor", "Executor", "transform.executor"),
        ("trainer.component", "Trainer", "trainer.component"),
        ("trainer.executor", "Executor", "trainer.executor"),
        ("trainer.executor", "GenericExecutor", "trainer.executor"),
        ("evaluator.component", "Evaluator", "evaluator.component"),
        ("evaluator.executor", "Executor", "evaluator.executor"),
        ("infra_validator.component", "InfraValidator", "serving_check.infra_validator"),
        ("pusher.component", "Pusher", "pusher.component"),
        ("pusher.executor", "Executor", "pusher.executor"),
    )
] + [
    (f"{_CLOUD}.trainer.component", "Trainer", _CLOUD_REPLACEMENTS),
    (f"{_CLOUD}.pusher.component", "Pusher", _CLOUD_REPLACEMENTS),
    (f"{_CLOUD}.tuner.component", "Tuner", _CLOUD_REPLACEMENTS),
    (f"{_CLOUD}.bulk_inferrer.component", "CloudAIBulkInferrerComponent", _CLOUD_REPLACEMENTS),
]

_KUBEFLOW_RUNNER = "tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner"
_RUN_EXECUTOR = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_INSTALLED = "components.installed"
_OUTCOME_LOGGERS = ("components.evaluator.executor", "components.pusher.executor")
_MODULES = {module for stock, _, ours in _REPLACED for module in (stock, ours)} | {_KUBEFLOW_RUNNER}


def install() -> None:
    """Makes TFX's names of components and executors mean ours, and calls `estimator_core.install()`.

    With it, a pipeline definition and its module files need no other change. It holds for this process, for
    the workers of its Beam pipelines, and for the containers of a pipeline that it compiles with TFX's
    KubeflowV2DagRunner. Call it before the first import of TFX: a name that another module has imported from
    TFX by then keeps its meaning there. May be called repeatedly.

    Example:
        import components

        components.install()
        from tfx import v1 as tfx  # tfx.components.Trainer is components.Trainer
    """
    estimator_core.install()
    if _INSTALLED not in worker_modules and (late := _imported_from_tfx()):
        _LOGGER.warning(
            "components.install() was called after the import of %s by %s, where it is still TFX's own. "
            "Move the call above the imports of TFX.",
            *late,
        )
    after_import(_MODULES, _replace)
    # TFX's runners show warnings only: without its outcome, a successful run ends like a failed one.
    for name in _OUTCOME_LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)
    if _INSTALLED not in worker_modules:
        worker_modules.append(_INSTALLED)


def _imported_from_tfx() -> tuple[str, str] | None:
    """Returns a class of TFX that should be replaced, and a module that has already imported it; or None."""
    stock_classes = {
        id(getattr(sys.modules[stock], name)): f"{stock}.{name}"
        for stock, name, _ in _REPLACED
        if hasattr(sys.modules.get(stock), name)
    }
    for module_name, module in list(sys.modules.items()) if stock_classes else ():
        if not module_name.startswith(("tfx.", "components.")):
            for value in list(getattr(module, "__dict__", {}).values()):
                if id(value) in stock_classes:
                    return stock_classes[id(value)], module_name
    return None


def _replace(module: types.ModuleType) -> None:
    if module.__name__ == _KUBEFLOW_RUNNER:
        command = ("python", "-m", _INSTALLED, _RUN_EXECUTOR)
        module.KUBEFLOW_TFX_CMD = command  # type: ignore[attr-defined]
    for stock_name, name, our_name in _REPLACED:
        if module.__name__ not in (stock_name, our_name) or stock_name not in sys.modules:
            continue
        ours = sys.modules.get(our_name) or importlib.import_module(our_name)
        # Ours may be in the middle of its import, which needs TFX's. Its end calls this function again.
        if hasattr(ours, name):
            _set_everywhere(sys.modules[stock_name], name, getattr(ours, name))


def _set_everywhere(stock: types.ModuleType, name: str, value: object) -> None:
    """Sets the name in TFX's module that defines it, and in TFX's modules that have imported it."""
    stock_class = stock.__dict__.get(name, stock)
    setattr(stock, name, value)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("tfx.") and module.__dict__.get(name) is stock_class:
            setattr(module, name, value)
