"""Charts as SVG images for a page: bars of ratios, and lines over logarithmic scales.

The file contains its own colors, for light and dark.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2933}.m{fill:#5b6770}.g{stroke:#d5dbe0}"
    ".a{stroke:#1f2933;stroke-dasharray:4 3}.w{stroke:#1f2933}"
    ".s0{stroke:#0b62a4;fill:#0b62a4}.s1{stroke:#c2410c;fill:#c2410c}"
    ".s2{stroke:#15803d;fill:#15803d}.s3{stroke:#7e22ce;fill:#7e22ce}.l{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#e5e9ec}.m{fill:#a3adb5}.g{stroke:#3d464d}"
    ".a,.w{stroke:#e5e9ec}.s0{stroke:#6cb6ff;fill:#6cb6ff}.s1{stroke:#ff9b66;fill:#ff9b66}"
    ".s2{stroke:#6fd08c;fill:#6fd08c}.s3{stroke:#d0a2ff;fill:#d0a2ff}.l{fill:none}}"
)
_LETTER = 8  # upper limit of a letter's average width
_DASHES = ("", "6 3", "2 3", "8 3 2 3")


def bars(title: str, values: Sequence[tuple[str, float, float, float, float | None]]) -> str:
    """Returns horizontal bars on a logarithmic scale, from 1."""
    numbers = [number for _, *rest in values for number in rest if number is not None]
    low, high = _decades([*numbers, 1.0])
    left = max(250, _LETTER * max(len(name) for name, *_ in values) + 16)
    width, row = 430, 26
    height = row * len(values)

    def x(value: float) -> float:
        return left + width * (math.log10(value) - low) / (high - low)

    parts = _vertical_lines(low, high, x, 30, 34 + height, "x")
    for index, (name, value, least, most, aim) in enumerate(values):
        y = 34 + row * index
        start, end = sorted((x(1), x(value)))
        parts.append(
            f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="s{0 if value >= 1 else 1}" x="{start:.1f}" y="{y + 6}" '
            f'width="{max(end - start, 1):.1f}" height="14"/>'
            f'<path class="w" d="M{x(least):.1f} {y + 13}H{x(most):.1f}"/>'
        )
        if aim is not None:
            parts.append(f'<path class="a" d="M{x(aim):.1f} {y + 2}V{y + 24}"/>')
        parts.append(f'<text x="{left + width + 10}" y="{y + 17}">{value:.3g}x</text>')
    return _document(title, left + width + 80, 60 + height, parts)


def lines(
    title: str,
    labels: tuple[str, str],
    series: Mapping[str, Sequence[tuple[float, float]]],
    log_x: bool = True,
) -> str:
    """Returns lines over two logarithmic scales."""
    if len(series) > len(_DASHES):
        raise ValueError(f"A chart has at most four lines. Received: {list(series)}")
    points = [point for one in series.values() for point in one]
    left, top, width, height = 70, 40, 480, 260
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    parts = []
    if log_x:
        (x_low, x_high), (y_low, y_high) = _decades(xs), _decades(ys)

        def x(value: float) -> float:
            return left + width * (math.log10(value) - x_low) / (x_high - x_low)

        def y(value: float) -> float:
            return top + height * (1 - (math.log10(value) - y_low) / (y_high - y_low))

        parts += _vertical_lines(x_low, x_high, x, top, top + height, "")
        y_ticks = [10.0**power for power in range(y_low, y_high + 1)]
    else:
        _decades(points[0])  # checks that there are numbers above 0
        x_most, y_most = max(xs), 1.25 * max(ys)

        def x(value: float) -> float:
            return left + width * value / x_most

        def y(value: float) -> float:
            return top + height * (1 - value / y_most)

        for tick in (0, x_most / 2, x_most):
            parts.append(_text(x(tick), top + height + 18, _number(tick), "middle"))
        y_ticks = [y_most * quarter / 4 for quarter in range(5)]
    for tick in y_ticks:
        parts.append(f'<path class="g" d="M{left} {y(tick):.1f}H{left + width}"/>')
        parts.append(_text(left - 6, y(tick) + 4, _number(tick), "end"))
    for index, (name, line) in enumerate(series.items()):
        path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in line)
        parts.append(f'<path class="s{index} l" stroke-dasharray="{_DASHES[index]}" d="M{path}"/>')
        if log_x:
            parts += [f'<circle class="s{index}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3"/>' for a, b in line]
        end = top + 16 + 22 * index
        parts.append(
            f'<path class="s{index} l" stroke-dasharray="{_DASHES[index]}" '
            f'd="M{left + width + 14} {end - 4}h28"/>'
            f'<text x="{left + width + 48}" y="{end}">{escape(name)}</text>'
        )
    parts.append(_text(left + width / 2, top + height + 40, labels[0], "middle"))
    parts.append(_text(left - 6, top - 8, labels[1], "start"))
    legend = 56 + _LETTER * max(len(name) for name in series)
    return _document(title, left + width + legend, top + height + 54, parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Returns the powers of 10 around values."""
    if not values or min(values) <= 0:
        raise ValueError(f"A chart needs numbers above 0. Received: {list(values)}")
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _vertical_lines(
    low: int, high: int, x: Callable[[float], float], top: float, bottom: float, suffix: str
) -> list[str]:
    parts = []
    for power in range(low, high + 1):
        place = x(10.0**power)
        parts.append(f'<path class="g" d="M{place:.1f} {top}V{bottom}"/>')
        parts.append(_text(place, bottom + 18, f"{_number(10.0**power)}{suffix}", "middle"))
    return parts


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="m" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-labelledby="t">'
        f'<title id="t">{escape(title)}</title><style>{_STYLE}</style>'
        f'<text x="8" y="15">{escape(title)}</text>' + "".join(parts) + "</svg>\n"
    )
