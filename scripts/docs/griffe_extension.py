"""Adapts griffe to the docstrings of this project."""

import ast
import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?P<indent> *)Example:\n(?P<code>(?:(?P=indent) +.*\n|\n)+)", re.MULTILINE)


class ProjectDocstrings(griffe.Extension):
    """Shows examples as code, and constructors that are not written as an `__init__`."""

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

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Adds the constructors of `estimator_core.v1.canned`, which differ from those of `canned`."""
        if pkg.name != "estimator_core":
            return
        for cls in pkg["v1.canned"].classes.values():
            if cls.is_alias:
                continue
            call: Any = ast.parse(str(cls.members["__init__"].value), mode="eval").body
            parameters = []
            for parameter in pkg[ast.unparse(call.args[0])].members["__init__"].parameters:
                # The same changes as in `estimator_core.v1.canned._constructor`.
                values = {key: getattr(parameter, key) for key in ("annotation", "kind", "default")}
                for keyword in call.keywords:
                    if keyword.value.value == parameter.name:
                        new = values | {"annotation": "Callable[..., Any] | None", "default": "None"}
                        parameters.append(griffe.Parameter(keyword.arg, **new))
                if parameter.name == "loss_reduction":
                    values["default"] = "LossReduction.WEIGHTED_SUM"
                parameters.append(griffe.Parameter(parameter.name, **values))
            init = griffe.Function("__init__", parameters=griffe.Parameters(*parameters), returns=None)
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
