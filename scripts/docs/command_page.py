"""The reference page of the command line, from its Typer application."""

import inspect
from collections.abc import Iterator
from typing import Any

import typer

PROGRAM = "estimator-pipelines"


def command_page(app: typer.Typer) -> str:
    """Returns the page as Markdown: a section for each command, with its arguments and options."""
    lines = ["# The command line", "", f"`{PROGRAM} COMMAND`; `--help` says the same.", ""]
    for words, command in commands(typer.main.get_command(app)):
        lines += _section(words, command)
    return "\n".join(lines)


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields each command that can be called, with its words: `("schema", "accept")`."""
    members = getattr(command, "commands", None)
    if members is None:
        yield words, command
        return
    for name, member in sorted(members.items()):
        yield from commands(member, (*words, name))


def _section(words: tuple[str, ...], command: Any) -> list[str]:
    lines = [f"## {' '.join(words)}", "", inspect.cleandoc(command.help or ""), ""]
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = [PROGRAM, *words, *(_argument_name(argument) for argument in arguments)]
    usage += [f"{option.opts[0]} {_value(option)}".strip() for option in options if option.required]
    if any(not option.required for option in options):
        usage.append("[OPTIONS]")
    lines += ["```text", " ".join(usage), "```", ""]
    if arguments or options:
        lines += ["| | default | meaning |", "|---|---|---|"]
        lines += [_row(_argument_name(argument), argument) for argument in arguments]
        lines += [_row(f"{', '.join(option.opts)} {_value(option)}".strip(), option) for option in options]
        lines.append("")
    return lines


def _argument_name(argument: Any) -> str:
    name = (argument.metavar or str(argument.name).upper()).strip("[]")
    return name if argument.required else f"[{name}]"


def _value(option: Any) -> str:
    if getattr(option, "is_flag", False):
        return ""
    kind = option.type_descriptor.annotation
    return option.metavar or {int: "NUMBER", float: "NUMBER"}.get(kind, "TEXT")


def _row(name: str, parameter: Any) -> str:
    text = getattr(parameter, "help", None) or ""
    if parameter.required:
        default = "required"
    elif parameter.multiple:
        default = "may be repeated"
    elif getattr(parameter, "is_flag", False) or parameter.default is None:
        default = ""
    else:
        default = f"`{parameter.default}`"
    escaped = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return f"| `{name}` | {default} | {escaped} |"
