"""Loads a team's TFX pipeline from its Python file, as the file is."""

import ast
import contextlib
import importlib
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import components  # noqa: F401  - before any TFX import: it makes TFDV importable
from components.errors import SettingError
from components.user.code import function_names, get_function, importable_name, provide_tf_estimator
from pipelines.errors import BadInputError
from pipelines.steps.causes import describe_cause

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

_FUNCTIONS = ("create_pipeline", "_create_pipeline")
_RUNNERS = {
    "tfx.orchestration.local.local_dag_runner": "LocalDagRunner",
    "tfx.orchestration.beam.beam_dag_runner": "BeamDagRunner",
    "tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner": "KubeflowV2DagRunner",
}

_PARSERS: dict[Any, Callable[[str], Any]] = {
    bool: lambda text: {"true": True, "false": False}[text.lower()],
    int: int,
    float: float,
    str: str,
    Path: Path,
    Any: str,
}


def load_pipeline(
    file: Path, function: str | None = None, arguments: Mapping[str, Any] | None = None
) -> "Pipeline":
    """Returns the pipeline that a file defines.

    It comes from `function`, or from `create_pipeline` or `_create_pipeline` if the arguments suffice.
    Otherwise the file runs as a program, and the pipeline is what a runner of TFX receives, which does not
    run it.

    `arguments`: arguments of the function by name. A text becomes an integer, a number or a boolean where
    the function's annotation or default value says so.
    """
    module, source = _empty_module(file)
    arguments = dict(arguments or {})
    function = function or _callable_function(source, arguments)
    with _kubeflow_dag_runner(), _as_program(file):
        provide_tf_estimator()
        if function is not None:
            with _located_errors(file):
                _execute(source, module)
            try:
                create = get_function(module, function)
            except (AttributeError, TypeError) as error:
                raise BadInputError(f"--pipeline {file}:{function}: {error}") from error
            _convert(arguments, create, f"{file}:{function}")
            result = None
            with _located_errors(file):
                result = create(**arguments)
            return checked_pipeline(result, f"{file}:{function}")
        passed = _passed_to_runners(source, module, file)
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
    return checked_pipeline(passed[0], str(file))


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
    # Beam's workers in other processes import the executors, too. The folder comes last, since it may hold a
    # file such as `statistics.py`.
    paths = (os.environ.get("PYTHONPATH"), str(file.parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # a path that ends in .py has one
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module, source


def _callable_function(source: ast.Module, arguments: Mapping[str, Any]) -> str | None:
    """Returns the name of the function that needs no other arguments, or None."""
    functions = {node.name: node.args for node in source.body if isinstance(node, ast.FunctionDef)}
    for name in _FUNCTIONS:
        if name in functions:
            taken = functions[name]
            positional = [argument.arg for argument in (*taken.posonlyargs, *taken.args)]
            needed = positional[: len(positional) - len(taken.defaults)]
            pairs = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
            needed += [argument.arg for argument, default in pairs if default is None]
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
        if parameter.default is parameter.empty and parameter.kind not in kinds and name not in arguments
    ]


def _convert(arguments: dict[str, Any], create: Callable[..., Any], where: str) -> None:
    """Gives the arguments the types that a function declares."""
    try:
        parameters = inspect.signature(create, eval_str=True).parameters
    except NameError:  # of names that are imported for type checkers alone
        parameters = inspect.signature(create).parameters
    if missing := _missing(create, arguments):
        raise BadInputError(
            f"{where} needs {', '.join(missing)}: give --arg {missing[0]}=VALUE, or "
            "arguments = { ... } in [pipeline]"
        )
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
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
        kind = str if parameter.default in (parameter.empty, None) else type(parameter.default)
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    kinds = typing.get_args(kind) if is_union else (kind,)
    known = [kind for kind in kinds if kind in _PARSERS]
    for kind in known:
        with contextlib.suppress(KeyError, ValueError):
            return _PARSERS[kind](text)
    if known:
        raise BadInputError(f"{where} takes {' or '.join(kind.__name__ for kind in known)}")
    raise BadInputError(
        f"{where} takes {parameter.annotation}: give it in [pipeline] arguments of a TOML file"
    )


def _passed_to_runners(source: ast.Module, module: types.ModuleType, file: Path) -> list[Any]:
    """Executes a file as a program, and returns what it passes to TFX's runners, which run nothing.

    The module keeps its own name, by which its executors are found later.
    """
    passed: list[Any] = []

    def keep(runner: Any, pipeline: Any, *others: Any, **settings: Any) -> None:
        passed.append(pipeline)

    runners = [getattr(importlib.import_module(where), name) for where, name in _RUNNERS.items()]
    runners.append(_KubeflowDagRunner)
    originals = [vars(runner).get("run") for runner in runners]  # None where it is inherited
    try:
        for runner in runners:
            runner.run = keep
        with _located_errors(file):
            _execute(_AsMain().visit(source), module)
    except BadInputError:
        if not passed:  # it may have missed the result of the run
            raise
    finally:
        for runner, original in zip(runners, originals, strict=True):
            if original is None:
                del runner.run
            else:
                runner.run = original
    return passed


@contextmanager
def _located_errors(file: Path) -> Iterator[None]:
    """Turns errors of the user's file into one that names the line."""
    try:
        yield
    except (BadInputError, SettingError):
        raise
    except SystemExit as error:  # such as by absl's `app.run`, which ends with 0
        if error.code not in (None, 0):
            raise BadInputError(f"{file} ended with exit code {error.code}") from error
    except Exception as error:
        raise BadInputError(f"{file}: {describe_cause(error)}") from error


@contextmanager
def _as_program(file: Path) -> Iterator[None]:
    """Lets a file see the command line `python FILE`."""
    arguments = sys.argv
    sys.argv = [str(file)]
    try:
        yield
    finally:
        sys.argv = arguments


class _AsMain(ast.NodeTransformer):
    """Makes `__name__` equal to `"__main__"` in the conditions of `if` statements."""

    def visit_If(self, node: ast.If) -> ast.If:
        """Replaces the name in the condition."""
        node.test = _MainName().visit(node.test)
        self.generic_visit(node)  # `elif`, and conditions inside
        return node


class _MainName(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replaces the name by its value in a program."""
        if node.id == "__name__":
            return ast.copy_location(ast.Constant("__main__"), node)
        return node


class _KubeflowDagRunner:
    """The runner for Kubeflow Pipelines 1, which TFX has dropped: it only receives the pipeline."""

    def __init__(self, *settings: Any, **other_settings: Any):
        pass

    def run(self, pipeline: Any) -> None:
        """Receives the pipeline."""


@contextmanager
def _kubeflow_dag_runner() -> Iterator[None]:
    """Provides `tfx.orchestration.kubeflow.kubeflow_dag_runner`, which TFX no longer has, in the block."""
    name = "tfx.orchestration.kubeflow.kubeflow_dag_runner"
    module: Any = types.ModuleType(name)
    module.KubeflowDagRunner = _KubeflowDagRunner
    module.KubeflowDagRunnerConfig = types.SimpleNamespace
    module.get_default_kubeflow_metadata_config = types.SimpleNamespace
    module.get_default_pipeline_operator_funcs = lambda *settings, **others: []
    package: Any = importlib.import_module(name.rpartition(".")[0])
    sys.modules[name] = package.kubeflow_dag_runner = module
    try:
        yield
    finally:
        del sys.modules[name], package.kubeflow_dag_runner


def checked_pipeline(pipeline: Any, where: str) -> "Pipeline":
    """Returns a TFX pipeline; anything else is refused."""
    from tfx.orchestration.pipeline import Pipeline

    if not isinstance(pipeline, Pipeline):
        raise BadInputError(
            f"{where} gives no TFX pipeline. Received: {type(pipeline).__name__}. Return "
            "tfx.dsl.Pipeline(...)"
        )
    return pipeline
