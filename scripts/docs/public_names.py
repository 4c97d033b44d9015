"""Finds the definitions of a package's public names in the sources, without importing them."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Name:
    """A public name."""

    path: str  # Public path, such as `estimator_core.Estimator`
    module: str  # Module with the definition, such as `estimator_core.estimator`
    # Original of a name from elsewhere, such as `tf.compat.v1.train.SessionRunHook`
    alias_of: str | None = None


def public_names(package: str) -> list[Name]:
    """Returns the names in `__all__` of a package, without its submodules."""
    tree = _tree(package)
    listed = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and _target(node) == "__all__"
    )
    resolved = (_resolve(package, name, f"{package}.{name}") for name in ast.literal_eval(listed))
    return [name for name in resolved if name is not None]


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
    raise ValueError(
        f"__all__ lists {path}, which {module} does not define. Received: name={name!r}"
    )


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
