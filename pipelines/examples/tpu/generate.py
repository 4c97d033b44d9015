"""Writes generated readings of pumps: `python generate.py data.csv`."""

import csv
import math
import pathlib
import random
import sys


def write_csv(path: pathlib.Path, rows: int = 4_000, seed: int = 1) -> None:
    """Writes `rows` readings: temperature, vibration, pressure, and the label `fails`, 0 or 1."""
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["celsius", "vibration_mm", "pressure_bar", "fails"])
        for _ in range(rows):
            celsius, vibration = draw.gauss(60, 10), math.exp(draw.gauss(0, 0.5))
            pressure = draw.gauss(8, 1)
            # Both a low and a high pressure are a bad sign; vibration is, the more so in the heat.
            log_odds = 1.5 * abs(pressure - 8) + vibration * (celsius - 50) / 10 - 3
            fails = int(draw.random() < 1 / (1 + math.exp(-log_odds)))
            writer.writerow([f"{celsius:.1f}", f"{vibration:.2f}", f"{pressure:.2f}", fails])


if __name__ == "__main__":
    write_csv(pathlib.Path(sys.argv[1]))
