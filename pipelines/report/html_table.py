"""Tables and text as HTML."""

import html
from collections.abc import Iterable


def table(header: Iterable[str], rows: Iterable[list[str]]) -> str:
    """Returns a table whose cells are HTML; one that starts with `<td` is taken as it is."""
    head = "".join(f"<th>{text(name).replace('_', '_<wbr>')}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def number(value: float | None, form: str = "{:.5g}") -> str:
    """Returns the cell of a number; empty for None."""
    return f'<td class="number">{"" if value is None else form.format(value)}</td>'


def text(plain: str) -> str:
    """Returns plain text as HTML."""
    return html.escape(plain)
