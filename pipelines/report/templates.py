"""Renders the templates: everything is escaped, and the page allows only its own style and script."""

import base64
import functools
import hashlib
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pipelines.report import words

FOLDER = Path(__file__).parent / "templates"

_BREAKS = re.compile(r"(?<=[^\W_][_./:-])(?=[^\W_])")


def render(template: str, **values: Any) -> str:
    """Returns a page."""
    style, script = _asset("style.css"), _asset("filter.js")
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    text: str = (
        _environment()
        .get_template(template)
        .render(
            style=style,
            style_hash=_source_hash(style),
            script=script,
            script_hash=_source_hash(script),
            made=now,
            **values,
        )
    )
    return f"{text.rstrip()}\n"


def breakable(text: object) -> Any:
    """Returns a text for HTML that may be broken into lines behind `_`, `.`, `/`, `:` or `-` in a name."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in _BREAKS.split(str(text)))


@functools.cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        breakable=breakable,
        counted=words.counted,
        number=words.number,
        signed=words.signed,
        percent=words.percent,
        size=words.size,
    )
    return environment


@functools.cache
def _asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """Returns the source expression of an inline style or script for a Content Security Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
