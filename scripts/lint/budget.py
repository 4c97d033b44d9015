"""Prints the size and the wording of each package; fails above the limits in pyproject.toml.

`[tool.budget.lines]` limits the lines of Python, `[tool.budget.phrases]` the phrases of phrases.toml per
1,000 words in docstrings, comments, messages, pages and templates. Both only go down: lower a limit when
you can, and give the reason in the commit message when you have to raise it.
"""

import argparse
import ast
import io
import pathlib
import re
import sys
import tokenize
from collections.abc import Iterator

import tomllib

ROOT = pathlib.Path(__file__).parents[2]
CODE = re.compile(r"`[^`]*`|<[^>]*>")


def texts(file: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yields the English of a file with its lines."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.lineno, node.value
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        return
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if not is_code and (file.suffix == ".md" or "{" not in line):
            yield number, CODE.sub("x", line)


def matches(folder: str) -> tuple[list[str], int]:
    """Returns the places with a phrase in a folder, and the folder's number of words."""
    phrases = tomllib.loads((ROOT / "scripts" / "lint" / "phrases.toml").read_text())["phrase"]
    patterns = [(re.compile(item["pattern"], re.MULTILINE), item["instead"]) for item in phrases]
    places, words = [], 0
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix not in (".py", ".md", ".j2"):
            continue
        for line, text in texts(file):
            words += len(text.split())
            for pattern, instead in patterns:
                for match in pattern.finditer(text):
                    number = line + text.count("\n", 0, match.start())
                    near = text[max(0, match.start() - 30) : match.end() + 30].replace("\n", " ")
                    places.append(f"{file.relative_to(ROOT)}:{number}: {instead}: ...{near}...")
    return places, words


def main() -> int:
    """Prints the table; returns 1 if a package is above a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", metavar="FOLDER", help="list the phrases in a folder instead")
    folder_to_list = parser.parse_args().places
    if folder_to_list:
        print("\n".join(matches(folder_to_list)[0]))
        return 0
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["budget"]
    exceeded = []
    print(f"{'':<16}{'lines':>8}{'limit':>8}{'phrases':>10}{'limit':>7}")
    for folder in budget["phrases"]:
        lines = sum(file.read_text("utf-8").count("\n") for file in (ROOT / folder).rglob("*.py"))
        places, words = matches(folder)
        rate = round(1000 * len(places) / words, 2)
        max_lines, max_rate = budget["lines"].get(folder, 0), budget["phrases"][folder]
        print(f"{folder:<16}{lines:>8,}{max_lines:>8,}{rate:>10.2f}{max_rate:>7.2f}")
        if lines > max_lines:
            exceeded.append(f"{folder} has {lines:,} lines of Python; the limit is {max_lines:,}")
        if rate > max_rate:
            exceeded.append(
                f"{folder} has {rate:.2f} phrases per 1,000 words; the limit is {max_rate:.2f}. List them "
                f"with `python scripts/lint/budget.py --places {folder}`"
            )
    for message in exceeded:
        print(f"[tool.budget] in pyproject.toml: {message}.", file=sys.stderr)
    return int(bool(exceeded))


if __name__ == "__main__":
    sys.exit(main())
