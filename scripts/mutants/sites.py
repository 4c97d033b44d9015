"""Finds the places in the sources that can be mutated, and puts mutants into a copy of a file.

A copy of a file holds the original and all its mutants: each mutated expression becomes
`(MUTANT if __mutant__(17) else (ORIGINAL))`, on the lines where it was. Mutant 17 is active in processes with
the environment variable MUTANT=17; with REACHED, they also write to that file which mutants they reach.
"""

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Inserted after the docstring of each file with mutants, on the same line. Subprocesses inherit the
# environment, and nothing else is needed to activate a mutant in them, not even an import.
RUNTIME = """
def __mutant__(number, can_be_active=True, *, _os=__import__("os"), _seen=set()):
    key = number, _os.getpid(), _os.environ.get("PYTEST_CURRENT_TEST")
    if "REACHED" in _os.environ and key not in _seen:
        _seen.add(key)
        file = _os.open(_os.environ["REACHED"], _os.O_WRONLY | _os.O_APPEND | _os.O_CREAT)
        _os.write(file, b"%d\\n" % number)
        _os.close(file)
    return can_be_active and _os.environ.get("MUTANT") == str(number)
"""
SWAPS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
SWAPPED = {old: new for pair in SWAPS for old, new in (pair, pair[::-1])}
# Functions whose arguments people read, and such arguments of other functions.
MESSAGES = re.compile("debug|info|warn|warning|error|exception|critical|log|print|echo|secho")
TEXTS = re.compile("help|description|title|metavar|stacklevel")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Site:
    """An expression and what replaces it."""

    line: int
    column: int  # in bytes, as the end
    end_line: int
    end_column: int
    operator: str
    mutated: str
    function: tuple[int, ...]  # lines of the functions around it; empty for code that an import runs


def _mutations(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Yields operator, original and mutated expression."""
    match node:
        case ast.Compare(ops=[operator, *rest]):
            operators = [SWAPPED[type(operator)](), *rest]
            yield "compare", node, ast.Compare(node.left, operators, node.comparators)
        case ast.BoolOp():
            yield "and/or", node, ast.BoolOp(SWAPPED[type(node.op)](), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, node.operand
        case (
            ast.BinOp(left=ast.JoinedStr() | ast.Constant(value=str()))
            | ast.BinOp(right=ast.JoinedStr() | ast.Constant(value=str()))
        ):
            return
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            yield "arithmetic", node, ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
        case ast.Constant(value=bool()):
            yield "constant", node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield "constant", node, ast.Constant(node.value + 1)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return", value, ast.Constant(None)
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield "condition", test, ast.UnaryOp(ast.Not(), test)
        case ast.Expr(value=ast.Call() as call) if list(_children(call)):
            yield "statement", call, ast.Constant(None)
        case ast.Call(keywords=keywords):
            for number, keyword in enumerate(keywords):
                if keyword.arg and not TEXTS.fullmatch(keyword.arg):
                    others = keywords[:number] + keywords[number + 1 :]
                    yield "keyword", node, ast.Call(node.func, node.args, others)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the children that hold neither types nor texts for people."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.pattern():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if MESSAGES.fullmatch(name):
            return
        case ast.Call(func=ast.Name(id="cast" | "TypeVar")) | ast.Subscript(value=ast.Name(id="Literal")):
            return
        case ast.keyword(arg=str(name)) if TEXTS.fullmatch(name):
            return
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            items = value if isinstance(value, list) else [value]
            yield from (item for item in items if isinstance(item, ast.AST))


def find_sites(source: str) -> list[Site]:
    """Returns all sites of a file."""
    sites, around = [], [(ast.parse(source), ())]
    while around:
        node, function = around.pop()
        children = list(_children(node))
        if children or isinstance(node, ast.Constant):
            for operator, original, mutated in _mutations(node):
                mutated = ast.unparse(ast.fix_missing_locations(copy.deepcopy(mutated)))
                place = original.lineno, original.col_offset, original.end_lineno, original.end_col_offset
                sites.append(Site(*place, operator, mutated, function))
        for child in children:
            # Default values belong to the code around the function.
            is_body = isinstance(node, FUNCTIONS) and not isinstance(child, ast.arguments)
            around.append((child, (*function, node.lineno) if is_body else function))
    return sorted(sites, key=lambda site: (site.line, site.column, site.operator, site.mutated))


def with_mutants(source: str, mutants: dict[int, Site]) -> str:
    """Returns the source of a file that holds these mutants, by number.

    Code that an import runs reaches its mutants before any test begins. If there are such mutants, each
    function of the file gets a probe that says that a test has reached them.
    """
    tree, probes = ast.parse(source), {}
    imported = [number for number, site in mutants.items() if not site.function]
    if imported:
        probed = set()
        for site in find_sites(source):
            if site.function and site.function not in probed:
                probed.add(site.function)
                probes[site] = " or ".join(f"__mutant__({number}, False)" for number in imported)
    insertions = []
    for number, site in mutants.items():
        insertions += _around(site, f"({site.mutated} if __mutant__({number}) else (", "))")
    for site, probe in probes.items():
        insertions += _around(site, f"(None if {probe} else (", "))")
    header = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    header = header or [node for node in tree.body[:1] if ast.get_docstring(tree) is not None]
    if header:
        place = header[-1].end_lineno, header[-1].end_col_offset
        insertions.append((place, 0, f"; exec({RUNTIME!r})"))
    else:
        insertions.append(((1, 0), 0, f"exec({RUNTIME!r}); "))
    lines = source.encode().split(b"\n")
    for (line, column), _, text in sorted(insertions, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + text.encode() + lines[line - 1][column:]
    mutated = b"\n".join(lines).decode()
    compile(mutated, "mutated", "exec")
    return mutated


def _around(site: Site, before: str, after: str) -> list[tuple[tuple[int, int], int, str]]:
    """Returns the two insertions around a site: place, order at that place, text."""
    start, end = (site.line, site.column), (site.end_line, site.end_column)
    size = (end[0] - start[0]) * 10_000 + end[1] - start[1]
    # At a place, sites that end there close before others open. Wider sites close last and open first.
    return [(start, -size, before), (end, size - 10**9, after)]
