"""Finds and loads the user's modules and functions: by import path, or from a module file.

A module file is loaded in one of two ways. If only this process needs it, `load_module_file`
executes it under a unique name. If other code imports it by name, as Transform does with its
`preprocessing_fn`, `importable_name` returns the name by which `load_module` finds it.

Source: TFX's `udf_utils`, which builds a wheel of a module file. Here it is loaded from its own folder.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import logging
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from components.nearest import nearest_first

_LOGGER = logging.getLogger(__name__)

_OUR_PACKAGES = ("components", "estimator_core", "pipelines")


def load_function(import_path: str) -> Callable[..., Any]:
    """Returns the function with a dotted path, e.g. `my_project.taxi.trainer_fn`.

    The current working directory counts as importable, as it does for `python -m`.
    """
    module_name, _, function_name = import_path.rpartition(".")
    if not module_name or not function_name:
        raise ValueError(
            "A function is given by its import path, such as 'my_project.taxi.trainer_fn'. "
            f"Received: {import_path!r}"
        )
    return get_function(load_module(module_name), function_name)


def load_module(import_path: str) -> types.ModuleType:
    """Returns the module with a dotted path, e.g. `my_project.taxi`.

    The current working directory counts as importable, as it does for `python -m`.
    """
    make_importable(os.getcwd())
    provide_tf_estimator()
    try:
        with _names_explained():
            return importlib.import_module(import_path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{import_path}.".startswith(f"{error.name}."):
            raise  # the user's module exists, but a module that it imports does not
        raise ModuleNotFoundError(
            f"No module {error.name!r} for {import_path!r}. Looked in the current "
            f"directory ({os.getcwd()}) and in sys.path; install the module, or set PYTHONPATH "
            "to the directory that holds it.",
            name=error.name,
        ) from error


def load_module_file(module_file: str) -> types.ModuleType:
    """Executes a Python file and returns it as a module; its directory becomes importable.

    The file is executed again at each call, so an edited file is always read again.
    """
    path = _python_file(module_file)
    make_importable(str(path.parent))
    provide_tf_estimator()
    # A unique name: the file's stem may be that of an installed module.
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"module_file_{digest}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"Cannot load module_file. Received: {module_file!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look modules up by name
    try:
        with _names_explained():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_packaged_module(module_path: str) -> types.ModuleType:
    """Returns the module `NAME@WHEEL`, as TFX's runners package module files: WHEEL's path may be remote.

    The module is imported directly from the wheel, which has nothing but Python files and need not be
    installed.
    """
    from tfx.utils import io_utils  # here, so that TFX is only needed for a wheel

    name, _, wheel = module_path.partition("@")
    if wheel:
        make_importable(io_utils.ensure_local(wheel))
    return load_module(name)


def importable_name(module_file: str) -> str:
    """Returns the name by which a Python file can be imported; its directory becomes importable."""
    path = _python_file(module_file)
    make_importable(str(path.parent))
    try:
        spec = importlib.util.find_spec(path.stem)
    except ValueError:  # a module without a spec has the name, such as __main__
        spec = None
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != path:
        raise ImportError(
            f"the module name {path.stem!r} is taken by "
            f"{spec.origin if spec else 'another module'}. Rename the file."
        )
    return path.stem


def function_names(module: types.ModuleType) -> list[str]:
    return sorted(name for name, _ in inspect.getmembers(module, inspect.isfunction))


def get_function(module: types.ModuleType, function_name: str) -> Callable[..., Any]:
    function = getattr(module, function_name, None)
    if function is None:
        near = nearest_first(function_name, function_names(module))
        where = getattr(module, "__file__", None) or module.__name__
        raise AttributeError(
            f"{where} does not define {function_name!r}. Its functions are: {', '.join(near) or 'none'}."
        )
    if not callable(function):
        raise TypeError(f"{module.__name__}.{function_name} is not a function: {function!r}")
    return function


def make_importable(directory: str) -> None:
    """Appends a directory to sys.path; at the end, so that it shadows nothing."""
    if directory not in sys.path:
        sys.path.append(directory)


@contextlib.contextmanager
def _names_explained() -> Iterator[None]:
    try:
        yield
    except (AttributeError, ImportError) as error:
        if message := name_taken(error, sys.path):
            raise ImportError(message) from error
        raise


def name_taken(error: BaseException, folders: Iterable[str]) -> str | None:
    """Returns a message if an error is due to a folder with the name of one of our packages; else None."""
    if isinstance(error, ImportError):
        module = error.name or ""
    else:
        module = getattr(getattr(error, "obj", None), "__name__", "")
    name = str(module).partition(".")[0]
    if name not in _OUR_PACKAGES:
        return None
    own = Path(__file__).resolve().parents[2] / name
    for folder in folders:
        if all(Path(folder, ours).is_dir() for ours in _OUR_PACKAGES):
            continue  # this project, or another version of it
        for theirs in (Path(folder, name).resolve(), Path(folder, f"{name}.py").resolve()):
            if theirs.exists():
                return (
                    f"{error}. {name!r} is a package of estimator-pipelines ({own}), so {theirs} can't be "
                    f"imported by this name. Rename it, for example to my_{theirs.name}, or move it into a "
                    "package of your own, and change the import."
                )
    return None


def _python_file(module_file: str) -> Path:
    """Returns the absolute path of a module file, after checking that it exists and is a .py file."""
    path = Path(module_file).expanduser().resolve()
    if path.suffix != ".py":
        raise ValueError(f"module_file must be a .py file. Received: {module_file!r}")
    if not path.is_file():
        raise FileNotFoundError(f"module_file does not exist. Received: {module_file!r} ({path})")
    return path


def provide_tf_estimator() -> None:
    """Lets modules written for TFX before 1.16 find `tf.estimator` and `tfma.export` unchanged."""
    import tensorflow as tf  # here: planning a pipeline without a module needs no TensorFlow

    import estimator_core

    if not hasattr(tf, "estimator"):
        _LOGGER.info(
            "tf.estimator, tensorflow_estimator and tfma.export are those of estimator_core in the "
            "user's modules."
        )
        estimator_core.install()
