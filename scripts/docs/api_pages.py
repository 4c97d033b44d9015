"""The reference pages of the Python API, and the names on each page.

mkdocstrings replaces the `:::` lines by docstrings.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from public_names import ROOT, Name, public_names


@dataclass(frozen=True)
class ApiPage:
    """A page of the reference."""

    file: str  # Path below docs/
    title: str  # Heading of the page
    package: str  # Package with the public names
    # Returns True for the names of the package that belong on this page, and on no other
    takes: Callable[[Name], bool] = lambda name: True


def _room(*rooms: str) -> Callable[[Name], bool]:
    return lambda name: name.module.split(".")[1] in rooms


_ELSEWHERE = ("boosted_trees", "canned", "export", "heads", "hooks")

API_PAGES = (
    ApiPage(
        "reference/estimator.md", "Estimator, specs and training", "estimator_core",
        lambda name: not _room(*_ELSEWHERE)(name),
    ),
    ApiPage("reference/canned.md", "Canned Estimators", "estimator_core", _room("canned", "boosted_trees")),
    ApiPage("reference/heads.md", "Heads", "estimator_core", _room("heads")),
    ApiPage("reference/hooks.md", "Hooks", "estimator_core", _room("hooks")),
    ApiPage("reference/exporters.md", "Exporters", "estimator_core", _room("export")),
    ApiPage("reference/export.md", "Receivers and export outputs", "estimator_core.export"),
    ApiPage("reference/inputs.md", "Input functions", "estimator_core.inputs"),
    ApiPage("reference/experimental.md", "Experimental", "estimator_core.experimental"),
    ApiPage("reference/tpu.md", "TPUEstimator", "estimator_core.tpu"),
    ApiPage(
        "reference/v1.md", "The names of TensorFlow 1", "estimator_core.v1",
        lambda name: name.module.startswith("estimator_core.v1."),
    ),
    ApiPage("reference/components.md", "Components", "components"),
)  # fmt: skip


def names_of(page: ApiPage) -> list[Name]:
    """Returns the public names on a page."""
    return [name for name in public_names(page.package) if page.takes(name)]


def api_page(page: ApiPage) -> str:
    """Returns a page as Markdown."""
    names = names_of(page)
    lines = [f"# {page.title}", "", *_introduction(page), ""]
    for name in names:
        if name.alias_of is None:
            lines += [f"::: {name.path}", ""]
    others = [name for name in names if name.alias_of is not None]
    if others:
        lines += ["## Names of other libraries", "", "| name | is |", "|---|---|"]
        lines += [f"| `{name.path}` | `{name.alias_of}` |" for name in others]
    return "\n".join(lines)


def _introduction(page: ApiPage) -> list[str]:
    if page.package == "estimator_core":
        return [f"Names of `{page.package}`."]
    source = ROOT.joinpath(*page.package.split("."), "__init__.py").read_text(encoding="utf-8")
    paragraphs = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    return ["\n\n".join(_as_markdown(paragraph) for paragraph in paragraphs)]


def _as_markdown(paragraph: str) -> str:
    """Returns a paragraph of a docstring as Markdown; code becomes a code block."""
    is_code = all(
        line.startswith((" ", "from ", "import ")) or " = " in line or line.endswith(")")
        for line in paragraph.splitlines()
    )
    return f"```python\n{ast.unparse(ast.parse(paragraph.strip()))}\n```" if is_code else paragraph
