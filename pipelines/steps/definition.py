"""Loads a team's TFX pipeline from its Python file, as the file is."""

import ast
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import components  # noqa: F401  - before any TFX import: it makes TFDV importable
from components.user.code import function_names, get_function, importable_name, provide_tf_estimator
from pipelines.errors import BadInputError

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

_FUNCTIONS = ("create_pipeline", "_create_pipeline")
_RUNNERS = {
    "tfx.orchestration.local.local_dag_runner": "LocalDagRunner",
    "tfx.orchestration.beam.beam_dag_runner": "BeamDagRunner",
    "tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner": "KubeflowV2DagRunner",
}


def load_pipeline(
    file: Path, function: str | None = None, arguments: Mapping[str, Any] | None = None
) -> "Pipeline":
    """Returns the pipeline that a file defines.

    It comes from `function`, or from `create_pipeline` or `_create_pipeline` if the arguments suffice.
    Otherwise the file runs as a program, and the pipeline is the one that it passes to a runner of TFX, which
    does not run it.

    Args:
      file: Python file of the pipeline.
      function: Name of the function.
      arguments: Arguments of the function by name. A text becomes an integer, a number or a boolean where
        the function's annotation or default value says so.

    Raises:
      BadInputError: There is no such file or function, an argument is missing or unknown, or there is not
        exactly one pipeline.
    """
    module, source = _empty_module(file)
    arguments = dict(arguments or {})
    function = function or _callable_function(source, arguments)
    with _kubeflow_dag_runner():
        provide_tf_estimator()
        if function is not None:
            _execute(source, module)
            try:
                create = get_function(module, function)
            except (AttributeError, TypeError) as error:
                raise BadInputError(f"--pipeline {file}:{function}: {error}") from error
            _convert(arguments, create, f"{file}:{function}")
            return _checked(create(**arguments), f"{file}:{function}")
        passed = _passed_to_runners(source, module)
    own = next((name for name in _FUNCTIONS if hasattr(module, name)), None)
    if own and not passed:
        _convert(arguments, getattr(module, own), f"{file}:{own}")  # reports what it needs
    functions = f"Its functions: {', '.join(function_names(module)) or 'none'}"
    if arguments:
        raise BadInputError(
            f"--arg {next(iter(arguments))}: name the function of {file} that takes it, as in "
            f"--pipeline {file}:FUNCTION. {functions}"
        )
    if len(passed) != 1:
        raise BadInputError(
            f"{file} passes {len(passed) or 'no'} pipelines to a runner of TFX. Name the function that "
            f"returns the pipeline: --pipeline {file}:FUNCTION. {functions}"
        )
    return _checked(passed[0], str(file))


def _empty_module(file: Path) -> tuple[types.ModuleType, ast.Module]:
    """Returns a module under the file's name, by which its executors are imported, and the source."""
    if not file.is_file():
        raise BadInputError(f"--pipeline {file}: there is no such file")
    try:
        name = importable_name(str(file))
    except (ImportError, ValueError) as error:
        raise BadInputError(f"--pipeline {file}: {error}") from error
    try:
        source = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError) as error:
        raise BadInputError(f"--pipeline {file}: {error}") from error
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # a path that ends in .py has one
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module, source


def _callable_function(source: ast.Module, arguments: Mapping[str, Any]) -> str | None:
    """Returns the name of the function that needs no other arguments; None without one."""
    functions = {node.name: node.args for node in source.body if isinstance(node, ast.FunctionDef)}
    for name in _FUNCTIONS:
        if name in functions:
            taken = functions[name]
            positional = [one.arg for one in (*taken.posonlyargs, *taken.args)]
            needed = positional[: len(positional) - len(taken.defaults)]
            pairs = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
            needed += [one.arg for one, default in pairs if default is None]
            if set(needed) <= arguments.keys():
                return name
    return None


def _execute(source: ast.Module, module: types.ModuleType) -> None:
    exec(compile(source, str(module.__file__), "exec"), module.__dict__)


def _missing(create: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(create).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in kinds
        and name not in arguments
    ]


def _convert(arguments: dict[str, Any], create: Callable[..., Any], where: str) -> None:
    """Gives the arguments the types that a function declares.

    Raises:
      BadInputError: One is missing, unknown, or of another type.
    """
    parameters = inspect.signature(create).parameters
    if missing := _missing(create, arguments):
        raise BadInputError(
            f"{where} needs {', '.join(missing)}: give --arg {missing[0]}=VALUE, or "
            "arguments = { ... } in [pipeline]"
        )
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    for name, value in arguments.items():
        if name not in parameters:
            if takes_any:
                continue
            raise BadInputError(
                f"{where} has no argument {name!r}. Its arguments: {', '.join(parameters) or 'none'}"
            )
        if isinstance(value, str):
            arguments[name] = _typed(value, parameters[name], f"--arg {name}={value}: {where}")


def _typed(text: str, parameter: inspect.Parameter, where: str) -> Any:
    kind = parameter.annotation
    if kind is parameter.empty:
        kind = type(parameter.default)
    kind = getattr(kind, "__name__", str(kind))
    booleans = {"true": True, "false": False}
    try:
        if kind == "bool":
            return booleans[text.lower()]
        return {"int": int, "float": float}.get(kind, str)(text)
    except (KeyError, ValueError) as error:
        raise BadInputError(f"{where} takes {kind}") from error


def _passed_to_runners(source: ast.Module, module: types.ModuleType) -> list[Any]:
    """Executes a file as a program, and returns what it passes to TFX's runners, which run nothing.

    The module keeps its own name, by which its executors are found later.
    """
    passed: list[Any] = []

    def keep(runner: Any, pipeline: Any, *others: Any, **settings: Any) -> None:
        passed.append(pipeline)

    runners = [getattr(importlib.import_module(where), name) for where, name in _RUNNERS.items()]
    runners.append(_KubeflowDagRunner)
    originals = [vars(runner).get("run") for runner in runners]  # None where it is inherited
    arguments = sys.argv
    try:
        sys.argv = [str(module.__file__)]
        for runner in runners:
            runner.run = keep
        _execute(_AsMain().visit(source), module)
    except SystemExit as error:  # such as by absl's `app.run`
        if error.code not in (None, 0):
            raise BadInputError(f"{module.__file__} ended with exit code {error.code}") from error
    finally:
        sys.argv = arguments
        for runner, original in zip(runners, originals, strict=True):
            if original is None:
                del runner.run
            else:
                runner.run = original
    return passed


class _AsMain(ast.NodeTransformer):
    """Makes `__name__ == "__main__"` true."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Replaces the comparison."""
        sides = {ast.unparse(side) for side in (node.left, *node.comparators)}
        if sides == {"__name__", "'__main__'"} and isinstance(node.ops[0], ast.Eq):
            return ast.copy_location(ast.Constant(True), node)
        return node


class _KubeflowDagRunner:
    """TFX's former runner for Kubeflow Pipelines 1: here it only receives the pipeline."""

    def __init__(self, *settings: Any, **other_settings: Any):
        pass

    def run(self, pipeline: Any) -> None:
        """Receives the pipeline."""


@contextmanager
def _kubeflow_dag_runner() -> Iterator[None]:
    """Provides `tfx.orchestration.kubeflow.kubeflow_dag_runner`, which TFX no longer has, meanwhile."""
    name = "tfx.orchestration.kubeflow.kubeflow_dag_runner"
    module: Any = types.ModuleType(name)
    module.KubeflowDagRunner = _KubeflowDagRunner
    module.KubeflowDagRunnerConfig = types.SimpleNamespace
    module.get_default_kubeflow_metadata_config = types.SimpleNamespace
    module.get_default_pipeline_operator_funcs = lambda *settings, **others: []
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]


def _checked(pipeline: Any, where: str) -> "Pipeline":
    from tfx.orchestration.pipeline import Pipeline

    if not isinstance(pipeline, Pipeline):
        raise BadInputError(
            f"{where} gives no TFX pipeline. Received: {type(pipeline).__name__}. Return "
            "tfx.dsl.Pipeline(...)"
        )
    return pipeline
