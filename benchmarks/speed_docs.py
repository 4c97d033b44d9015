"""Writes the results of `speed.py` into docs/speed.md, between two comments, and the figures next to it."""

import pathlib
from collections.abc import Sequence
from typing import Any

from benchmarks import charts, speed_growth, speed_table
from benchmarks.speed_table import Row

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "speed.md"
BEGIN, END = ("<!-- made by benchmarks/speed.py: begin -->", "<!-- made by benchmarks/speed.py: end -->")


def replaced(text: str, made: str) -> str:
    """Returns a page with `made` in place of the text between the two comments."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise ValueError(f"The page must have {BEGIN!r} and then {END!r}, each once.")
    return f"{before}{BEGIN}\n\n{made.strip()}\n\n{END}{after}"


def ratios_figure(rows: Sequence[Row], by_processor: bool) -> str:
    """Returns the SVG of the ratios that have an aim."""
    bars = []
    for row in rows:
        if row.target is not None:
            ratios = row.processor if by_processor else row.time
            name = f"({row.work.letter}) {row.work.title}: {_short(row.peer)}"
            bars.append((name, ratios.median, ratios.least, ratios.most, row.target))
    what = "Processor time" if by_processor else "Time"
    return charts.bars(f"{what} of the other over ours; the dashed line is the aim", bars)


def write(
    page: pathlib.Path, rows: Sequence[Row], results: dict[str, Any], conditions: str, by_processor: bool
) -> None:
    """Writes the table into a page, and the figures into the folder figures/ next to it."""
    figures = {"speed-ratios.svg": ratios_figure(rows, by_processor)}
    texts = {
        "speed-ratios.svg": "Ratios as bars",
        "speed-batch.svg": "Steps a second by batch size",
        "speed-features.svg": "Steps a second by features",
        "speed-memory.svg": "Memory over the steps of a training",
    }
    if "growth" in results:
        figures |= speed_growth.figures(results["growth"]["measured"], by_processor)
    if "memory" in results:
        measured = results["memory"]["measured"]
        figures["speed-memory.svg"] = speed_growth.memory_figure(
            measured, "Memory while training", "training steps"
        )
    folder = page.parent / "figures"
    folder.mkdir(exist_ok=True)
    for name, svg in figures.items():
        (folder / name).write_text(svg, encoding="utf-8")
    lines = speed_table.lines(rows, by_processor)
    images = [f"![{text}](figures/{name})" for name, text in texts.items() if name in figures]
    parts = [conditions, speed_table.markdown(lines), *images, *speed_growth.memory_lines(results)]
    made = "\n\n".join(part.strip() for part in parts)
    page.write_text(replaced(page.read_text("utf-8"), made), encoding="utf-8")


def _short(peer: str) -> str:
    return "Keras fit" if peer.startswith("Keras fit") else peer
