"""Adapts griffe to the docstrings of this project."""

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?P<indent> *)Example:\n(?P<code>(?:(?P=indent) +.*\n|\n)+)", re.MULTILINE)


class ProjectDocstrings(griffe.Extension):
    """Shows examples as code, and a class with `__new__` with the parameters of `__new__`."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Uses the signature of `__new__` for a class without `__init__`."""
        made_by = cls.members.get("__new__")
        if made_by is None or "__init__" in cls.members or not isinstance(made_by, griffe.Function):
            return
        init = griffe.Function(
            "__init__", parameters=made_by.parameters, returns=None, lineno=made_by.lineno,
            endlineno=made_by.endlineno,
        )  # fmt: skip
        cls.set_member("__init__", init)

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Makes a code section of each `Example:`."""
        if obj.docstring is not None:
            obj.docstring.value = examples_as_code(obj.docstring.value)


def examples_as_code(text: str) -> str:
    """Returns a docstring whose `Example:` sections are code sections for griffe."""
    return _EXAMPLE.sub(_section, text + "\n").removesuffix("\n")


def _section(match: re.Match[str]) -> str:
    code = textwrap.dedent(match["code"]).strip("\n")
    if not code.startswith(">>>"):
        code = f"```python\n{code}\n```"
    return f"{match['indent']}Examples:\n{textwrap.indent(code, match['indent'] + '    ')}\n\n"
