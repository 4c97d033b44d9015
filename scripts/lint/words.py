"""Checks that docstrings say plainly what a thing does or holds, and that a test's name is a sentence.

A docstring's first sentence has a verb or is a noun phrase: it does not open with a question word ("What
runs a component", "Whether it is open"). The line of an argument or an attribute begins with a noun: not
with "Of the pipeline", "That of the chief" or "As in TensorFlow". Every public name has a docstring, and so
has every public method of a public class. A test's name is a sentence, of at least three words. `--count`
prints figures by package instead of the places.
"""

import argparse
import ast
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))

from api_pages import API_PAGES  # noqa: E402
from public_names import public_names  # noqa: E402

FOLDERS = ("estimator_core", "components", "pipelines", "scripts", "benchmarks", "tests")
# Question words that open a docstring, in place of a verb or a noun phrase.
QUESTION = re.compile(r"(What|Whether|How|Where|When|Which|Who|Whose|Why)\b")
NO_NOUN = "Of|That|Those|As|From|So|To|By|In|For|With|Whose|What|Which|Where|How|Whether|When|Who"
ARGUMENT = re.compile(rf"^ +\*{{0,2}}`{{0,2}}\w+`{{0,2}}(?: \([^)]*\))?: (?:{NO_NOUN}) ")
MIN_TEST_WORDS = 3
SECTIONS = ("Args:", "Attributes:", "Returns:", "Yields:", "Raises:")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.body[0].lineno, text


def short_test_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line of each test whose name is too short for a sentence, and the reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_test, words = node.name.startswith("test_"), node.name.split("_")[1:]
            if is_test and len(words) < MIN_TEST_WORDS:
                yield node.lineno, f"a test's name is a sentence: {node.name}"


def findings(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Yields the line of each sentence to rewrite, and the reason."""
    if QUESTION.match(text.lstrip()):
        yield line, f"opens with a question word: {text.strip().splitlines()[0]}"
    in_section = False
    for offset, row in enumerate(text.splitlines()):
        if row.strip() in SECTIONS:
            in_section = row.strip() in ("Args:", "Attributes:")
        elif in_section and ARGUMENT.match(row):
            yield line + offset, f"an argument's line begins with a noun: {row.strip()}"


def undocumented() -> Iterator[str]:
    """Yields each public name, and each public method of a public class, that has no docstring."""
    for name in (name for page in API_PAGES for name in public_names(page.package)):
        file = ROOT.joinpath(*name.module.split(".")).with_suffix(".py")
        if name.alias_of is None and file.exists():
            tree = ast.parse(file.read_text(encoding="utf-8"))
            defined = next(
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.ClassDef | ast.FunctionDef)
                and node.name == name.path.rpartition(".")[2]
            )
            methods = [
                node
                for node in defined.body
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            ]
            for node in [defined, *(methods if isinstance(defined, ast.ClassDef) else [])]:
                if ast.get_docstring(node) is None:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}: {node.name} is public: say what it does"


def files(folder: str) -> list[pathlib.Path]:
    """Returns the Python files of a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def count(folder: str) -> str:
    """Returns the figures of one package."""
    words = whats = total = questions = arguments = bad = modules = bad_modules = 0
    for file in files(folder):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for line, text in docstrings(tree):
            total += 1
            tokens = re.findall(r"[A-Za-z']+", text)
            words += len(tokens)
            whats += sum(word.lower() == "what" for word in tokens)
            questions += bool(QUESTION.match(text.lstrip()))
            bad += sum("argument" in reason for _, reason in findings(line, text))
            arguments += len(re.findall(r"^ +\*{0,2}\w+(?: \([^)]*\))?: [A-Z]", text, re.MULTILINE))
        module = ast.get_docstring(tree)
        modules += module is not None
        bad_modules += bool(module and QUESTION.match(module))
    return (
        f"{folder}: what {1000 * whats / max(words, 1):.1f} in 1,000 words; docstrings that open with a "
        f"question word {questions} of {total} ({100 * questions / max(total, 1):.1f} %), of modules "
        f"{bad_modules} of {modules}; arguments without a noun {bad} of {arguments}"
    )


def main() -> int:
    """Prints the places to rewrite; returns 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", help="print figures by package")
    arguments = parser.parse_args()
    if arguments.count:
        print("\n".join(count(folder) for folder in FOLDERS))
        return 0
    bad = False
    for place in undocumented():
        bad = True
        print(place)
    for folder in FOLDERS:
        for file in files(folder):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            found = [place for docstring in docstrings(tree) for place in findings(*docstring)]
            for place, reason in [*found, *short_test_names(tree)]:
                bad = True
                print(f"{file.relative_to(ROOT)}:{place}: {reason}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
