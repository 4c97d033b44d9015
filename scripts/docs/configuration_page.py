"""The reference page of the configuration file, from the models that check it.

`python -m scripts.docs.configuration_page` writes docs/reference/configuration.md.
"""

import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipelines.config.pipeline_config import PipelineConfig

PATH = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"

_HEAD = """\
# The configuration file

<!-- python -m scripts.docs.configuration_page writes this page from pipelines/config. -->

Every key, with its type and its default. A file is TOML; `--set section.key=value` sets one key on the
command line. Any other key is an error, which names the nearest valid key.
"""

_LISTS = (tuple, list)


def configuration_page(model: type[BaseModel]) -> str:
    """Returns the page as Markdown: a table for each section."""
    lines = [_HEAD]
    for header, section in sections(model):
        title = f"`{header}`" if header.startswith("[") else header
        lines += [f"## {title}", "", _summary(section), ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        meanings = attribute_meanings(section)
        for key, field in section.model_fields.items():
            if _tables(field.annotation):
                continue
            name = field.alias or key
            meaning = meanings.get(key, "").replace("|", "\\|")
            lines.append(f"| `{name}` | {_kind(field.annotation)} | {_default(field)} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def sections(model: type[BaseModel], name: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yields each table with its header in the form that a file has, in the order of the models."""
    yield name or "Outside of all tables", model
    for key, field in model.model_fields.items():
        below = f"{name.strip('[]')}.{field.alias or key}".lstrip(".")
        for kind, header in _tables(field.annotation):
            yield from sections(kind, header.format(below))


def attribute_meanings(model: type) -> dict[str, str]:
    """Returns the `Attributes:` of a class and its base classes, by name, each on one line."""
    meanings: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        _, _, text = inspect.cleandoc(vars(kind).get("__doc__") or "").partition("Attributes:\n")
        meanings |= _entries(textwrap.dedent(text.partition("\n\n")[0]))  # without other sections
    return meanings


def _entries(text: str) -> dict[str, str]:
    meanings: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if start := re.match(r"(\w+): (.*)", line):
            name, meanings[name] = start[1], start[2]
        elif line.startswith(" "):
            meanings[name] += " " + line.strip()
        elif line:
            break
    return meanings


def _summary(model: type[BaseModel]) -> str:
    text, _, _ = inspect.cleandoc(model.__doc__ or "").partition("Attributes:\n")
    text = re.sub(r"^`\[[^`]*`: ", "", text.strip())
    return text[:1].upper() + text[1:]


def _tables(annotation: Any) -> list[tuple[type[BaseModel], str]]:
    """Returns the model of a field that is a table in a file, with the form of its header; or nothing."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [(annotation, "[{}]")]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _LISTS:
        return [(kind, "[[{}]]") for part in arguments[:1] for kind, _ in _tables(part)]
    if origin is dict:
        return [(kind, "[{}.NAME]") for kind, _ in _tables(arguments[1])]
    if origin in (typing.Union, types.UnionType):
        return [table for part in arguments for table in _tables(part)]
    return []


def _kind(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{_toml(value)}`" for value in arguments)
    if origin in _LISTS:
        return f"list of {_kind(arguments[0])}"
    if origin is dict:
        return f"table of {_kind(arguments[1])}"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(part) for part in arguments if part is not type(None))
    names = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "anything"}
    return names.get(annotation, annotation.__name__)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value == "" or (not value and isinstance(value, dict | tuple)):
        return ""
    return f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if '"' in value else f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value)


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(configuration_page(PipelineConfig), encoding="utf-8")
