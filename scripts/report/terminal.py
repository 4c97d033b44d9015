"""Draws what a command shows in a terminal as an SVG: terminal.py OUT.svg TITLE FIRST_LINE COMMAND [ARG ...].

FIRST_LINE is how the first line to be drawn begins; the lines before it are left out.
"""

import io
import os
import pty
import subprocess
import sys

from rich.console import Console
from rich.text import Text

COLUMNS = 100


def shown(command: list[str]) -> list[str]:
    """Returns the lines that a terminal shows at the end, with their colours."""
    controller, terminal = pty.openpty()
    environment = os.environ | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        output = io.BytesIO()
        try:
            while read := os.read(controller, 1 << 16):
                output.write(read)
        except OSError:  # the end of a pseudo-terminal on Linux
            pass
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}: {output.getvalue().decode()[-2000:]}")
    # A line of progress is erased before the next one is written over it.
    text = output.getvalue().decode().replace("\x1b[1A", "").replace(f"{os.getcwd()}/", "")
    lines = text.split("\n")
    return [line.rstrip("\r").rpartition("\x1b[2K")[2].rpartition("\r")[2] for line in lines]


def main() -> None:
    out, title, first, *command = sys.argv[1:]
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    texts = [Text.from_ansi(line) for line in shown(command)]
    begin = next(number for number, text in enumerate(texts) if text.plain.startswith(first))
    for text in texts[begin:]:
        if not "\u2800" <= text.plain[:1] <= "\u28ff":  # the last picture of a spinner
            console.print(text)
    console.save_svg(out, title=title)


if __name__ == "__main__":
    main()
