"""The source of the user's code: its definitions, and those that a function can reach."""

import ast
import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from components.user.code import make_importable

MODULE_LEVEL = "(module level)"
_IS_PROGRAM = "__name__ == '__main__'"


@dataclass(frozen=True)
class Definition:
    """A function or a class of the user's, or the statements of a file outside of them."""

    digest: str  # Hash of its syntax: comments and line breaks do not count
    names: frozenset[str]


def read_definitions(
    *, import_path: str | None = None, module_file: str | None = None
) -> dict[str, Definition]:
    """Returns the definitions in all Python files next to a module, such as `taxi.py:trainer_fn`.

    Statements outside of functions and classes form one definition, `taxi.py:(module level)`. The result
    is empty if the source cannot be found here (then the code runs elsewhere).
    """
    source = _source_file(import_path, module_file)
    if source is None:
        return {}
    definitions: dict[str, Definition] = {}
    for path in sorted(source.parent.glob("*.py")):
        if path.is_file():  # editors leave broken links
            definitions |= _file_definitions(path)
    return definitions


def fingerprint(*, import_path: str | None = None, module_file: str | None = None) -> str:
    """Returns a hash of the user's code: of the named module, and of the files next to it that it uses.

    As an execution property it makes a changed module a changed execution, so that the result of the old code
    is not taken from the cache. Empty if the source cannot be found here.

    A file counts as used if its name occurs in the module, or in another used file: as an import, a variable,
    an attribute, or in a string. The same applies to a folder next to them, with all Python files in it.
    """
    source = _source_file(import_path, module_file)
    if source is None:
        return ""
    definitions = read_definitions(import_path=import_path, module_file=module_file)
    used = _used_files(definitions, source.name)
    return _hash(definitions, {key for key in definitions if key.partition(":")[0] in used}, source)


def reached_fingerprint(import_path: str) -> str:
    """Returns a hash of the code that a function or class may use; empty if its source is not here.

    Unlike `fingerprint`, it leaves out other functions of the same file.
    """
    source = _source_file(import_path, None)
    if source is None:
        return ""
    definitions = read_definitions(import_path=import_path)
    return _hash(definitions, reached(definitions, [import_path]), source)


def reached_names(import_path: str) -> dict[str, frozenset[str]]:
    """Returns the names in each definition that a function may use, such as `taxi.py:scale`."""
    source = _source_file(import_path, None)
    if source is None:
        return {}
    definitions = read_definitions(import_path=import_path)
    files = _used_files(definitions, source.name)
    used = {key: part for key, part in definitions.items() if key.partition(":")[0] in files}
    return {key: used[key].names for key in sorted(reached(used, [import_path]))}


def _hash(definitions: Mapping[str, Definition], used: Iterable[str], source: Path) -> str:
    """Returns a hash of definitions, and of the files in the folders next to them that they name."""
    digest = hashlib.sha256()
    names: set[str] = set()
    for key in sorted(used):
        digest.update(f"{key}\0{definitions[key].digest}\0".encode())
        names |= definitions[key].names
    for folder in sorted(path for path in source.parent.iterdir() if path.name in names):
        for file in sorted(folder.rglob("*.py") if folder.is_dir() else ()):
            content = b"".join(part.digest.encode() for part in _file_definitions(file).values())
            digest.update(f"{file.relative_to(folder.parent)}\0".encode() + content)
    return digest.hexdigest()


def reached(definitions: Mapping[str, Definition], functions: Iterable[str]) -> set[str]:
    """Returns the definitions that functions may use, directly or through further ones.

    It goes by names: a definition counts as used wherever its name occurs, be it a variable, an
    attribute of another object, or a string. Code that runs when a module is imported counts as used.
    """
    waiting = [key for key in definitions if key == f"__init__.py:{MODULE_LEVEL}"]
    for path in functions:
        module, _, name = path.rpartition(".")
        waiting.append(f"{module.rpartition('.')[2]}.py:{MODULE_LEVEL}")
        waiting += [key for key in definitions if key.partition(":")[2] == name]
    reached_keys: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in reached_keys or key not in definitions:
            continue
        reached_keys.add(key)
        file = key.partition(":")[0]
        waiting.append(f"{file}:{MODULE_LEVEL}")
        for other in definitions:
            other_file, _, name = other.partition(":")
            used = Path(other_file).stem if name == MODULE_LEVEL else name
            if used in definitions[key].names:
                waiting.append(other)
    return reached_keys


def _used_files(definitions: Mapping[str, Definition], module: str) -> set[str]:
    names: dict[str, set[str]] = {}
    for key, definition in definitions.items():
        names.setdefault(key.partition(":")[0], set()).update(definition.names)
    used: set[str] = set()
    waiting = {module, "__init__.py"} & names.keys()  # a package runs its __init__.py first
    while waiting:
        file = waiting.pop()
        used.add(file)
        waiting |= {other for other in names if Path(other).stem in names[file]} - used
    return used


def _source_file(import_path: str | None, module_file: str | None) -> Path | None:
    # Where a link leads: its neighbours are imported from there.
    source = Path(module_file).expanduser().resolve() if module_file else None
    if import_path:
        make_importable(os.getcwd())
        try:
            spec = importlib.util.find_spec(import_path.rpartition(".")[0])
        except (ImportError, ValueError):
            spec = None
        source = Path(spec.origin) if spec and spec.origin else None
    return source if source is not None and source.is_file() else None


def _file_definitions(path: Path) -> Mapping[str, Definition]:
    return _parse_definitions(path.name, path.read_bytes())


@functools.lru_cache(maxsize=1000)  # a run asks for the same code several times
def _parse_definitions(file: str, content: bytes) -> Mapping[str, Definition]:
    try:
        return _split_definitions(file, ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # or nested too deeply to parse
        digest = hashlib.sha256(content).hexdigest()
        return {f"{file}:{MODULE_LEVEL}": Definition(digest, frozenset())}


def _split_definitions(file: str, module: ast.Module) -> Mapping[str, Definition]:
    parts: dict[str, list[ast.stmt]] = {MODULE_LEVEL: []}
    for statement in module.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == _IS_PROGRAM:
            continue  # an imported module leaves it out
        # A decorator may do anything with the function it decorates while the module is imported.
        is_named = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        is_named = is_named and not getattr(statement, "decorator_list", ())
        name = getattr(statement, "name", "") if is_named else MODULE_LEVEL
        parts.setdefault(name, []).append(statement)
    return {
        f"{file}:{name}": Definition(
            hashlib.sha256("\n".join(map(_dump_syntax, statements)).encode()).hexdigest(),
            frozenset(used for statement in statements for used in _names(statement)),
        )
        for name, statements in parts.items()
    }


def _dump_syntax(statement: ast.stmt) -> str:
    """Returns the syntax as text, as Python 3.11 writes it: a root may continue with a newer Python."""
    # 3.12 adds type parameters to each function and class, and 3.13 leaves out what is empty.
    show_empty = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(statement, **show_empty).replace(", type_params=[]", "")


def _names(statement: ast.stmt) -> Iterable[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split(".")
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from node.module.split(".")
