"""Finds the definitions of a package's public names in the sources, without importing them."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Name:
    """A public name."""

    path: str  # such as `estimator_core.Estimator`
    module: str  # with the definition, such as `estimator_core.estimator`
    alias_of: str | None = None  # its name in another library: `tf.compat.v1.train.SessionRunHook`


def public_names(package: str) -> list[Name]:
    """Returns the public names of a package, such as `estimator_core.export`, without its submodules.

    They are listed in its `__all__`, or imported as `from x import y as y`.
    """
    names = (_resolve(package, name, f"{package}.{name}") for name in _listed(package))
    return [name for name in names if name is not None]


def _listed(module: str) -> list[str]:
    listed = []
    for node in _statements(_tree(module)):
        if isinstance(node, ast.Assign) and _target(node) == "__all__":
            if isinstance(node.value, ast.List):
                return list(ast.literal_eval(node.value))
        elif isinstance(node, ast.Assign):
            listed += [str(_target(node))]
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            listed += _listed(str(node.module))
        elif isinstance(node, ast.ImportFrom):
            listed += [alias.name for alias in node.names if alias.asname == alias.name]
    return listed


def _resolve(module: str, name: str, path: str) -> Name | None:
    for node in _statements(_tree(module)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return Name(path, module)
        if isinstance(node, ast.Assign) and _target(node) == name:
            return Name(path, module, ast.unparse(node.value).replace("tf1.", "tf.compat.v1.", 1))
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _imported(str(node.module), alias.name, path)
                if alias.name == "*" and name in _listed(str(node.module)):
                    return _resolve(str(node.module), name, path)
    raise ValueError(f"{path} is listed, but {module} does not define it. Received: name={name!r}")


def _imported(module: str, name: str, path: str) -> Name | None:
    if _file(f"{module}.{name}") is not None:
        return None  # a module
    if _file(module) is None:
        return Name(path, module, f"{module}.{name}")  # from another project
    return _resolve(module, name, path)


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """Returns the statements of a module, including those for type checkers."""
    statements = []
    for node in tree.body:
        statements += node.body if isinstance(node, ast.If) else [node]
    return statements


def _target(node: ast.Assign) -> str | None:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else None


def _file(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.exists()), None)


@cache
def _tree(module: str) -> ast.Module:
    file = _file(module)
    if file is None:
        raise ValueError(f"There is no such module in {ROOT}. Received: module={module!r}")
    return ast.parse(file.read_text(encoding="utf-8"))
