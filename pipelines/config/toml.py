"""Reads TOML, `--set` and `--param`, with errors for the user."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

from pipelines.atomic_files import read_small
from pipelines.errors import BadInputError, shown


def read_toml(config_file: Path) -> dict[str, Any]:
    try:
        text = read_small(config_file, "a configuration").decode()
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError as error:
        raise BadInputError(f"The configuration file {config_file} does not exist.") from error
    except IsADirectoryError as error:
        raise BadInputError(f"{config_file} is a folder; --config takes a TOML file.") from error
    except OSError as error:
        raise BadInputError(
            f"--config {shown(str(config_file))} cannot be read: {error.strerror}."
        ) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{config_file} is not UTF-8 text: {error}.") from error
    try:
        return _parse_toml(text)
    except ValueError as error:
        raise BadInputError(f"{config_file} is not valid TOML: {error}.") from error


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _UnreadableError("its values are nested too deeply") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        number = re.search(r"\d{4301,}", text.replace("_", ""))  # Python reads 4,300 digits
        if number is None:
            raise _UnreadableError(str(error)) from error
        line = text.replace("_", "")[: number.start()].count("\n") + 1
        raise _UnreadableError(
            f"the integer {number[0][:10]}... on line {line} has {len(number[0])} digits"
        ) from error


class _UnreadableError(ValueError):
    """TOML that Python cannot read."""


def split_setting(setting: str) -> tuple[list[str], str, str]:
    """Returns the names in the key of `--set KEY=VALUE`, the key, and the value, all as text.

    A name with a dot or an equals sign is quoted as in TOML: `columns."a.b"`.
    """
    name = r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[^.="\'][^.=]*'
    match = re.match(f"((?:{name})(?:[.](?:{name}))*)=", setting, re.DOTALL)
    try:
        keys = [
            tomllib.loads(f"key = {quoted}")["key"] if quoted[0] in "\"'" else quoted
            for quoted in re.findall(name, match[1] if match else "")
        ]
    except tomllib.TOMLDecodeError:
        keys = []
    if match is None or not keys:
        raise BadInputError(
            f"--set takes section.key=value, received {setting!r}. Quote a name that has a dot or an equals "
            "sign: --set 'columns.\"a.b\"=number'."
        )
    return keys, match[1], setting[match.end() :]


def toml_value(text: str, key: str) -> Any:
    """Returns the value of `--set key=text`: the text itself if it is not TOML."""
    try:
        return _parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except ValueError as error:
        raise BadInputError(f"--set {key}={shown(text)}: {error}.") from error


def columns_entry(name: str, use: str) -> str:
    """Returns the entry of `[columns]` that a message advises, such as `[columns] "Lease term" = "number"`.

    A name that TOML does not take as a bare key is quoted, so that the entry can be copied.
    """
    bare = re.fullmatch("[A-Za-z0-9_-]+", name)
    return f'[columns] {name if bare else toml_text(name)} = "{use}"'


def toml_text(text: str) -> str:
    """Returns a string as TOML, on one line."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def flat_settings(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the values of nested sections by `section.key`."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def parse_named(values: Sequence[str], option: str) -> dict[str, str]:
    named = {}
    for item in values:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadInputError(f"{option} takes name=value. Received: {item!r}")
        named[name] = value
    return named
