"""Writes generated parcels: `python generate.py data.csv`."""

import csv
import math
import pathlib
import random
import sys

CARRIERS = {"Heron": -0.8, "Kite": 0.0, "Swift": 1.2}  # effect on the log-odds of being late


def write_csv(path: pathlib.Path, rows: int = 3_000, seed: int = 1) -> None:
    """Writes `rows` parcels: distance, weight (sometimes missing), carrier, and the label `late`, 0 or 1."""
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["distance_km", "weight_kg", "carrier", "late"])
        for _ in range(rows):
            distance, weight = math.exp(draw.gauss(5, 1)), draw.uniform(0.1, 30)
            carrier = draw.choice(list(CARRIERS))
            # Far is late, but not with Swift; heavy is late with everybody.
            log_odds = CARRIERS[carrier] + (weight - 15) / 8
            log_odds += (math.log(distance) - 5) * (0 if carrier == "Swift" else 2)
            late = int(draw.random() < 1 / (1 + math.exp(-log_odds)))
            shown = "" if draw.random() < 0.05 else f"{weight:.1f}"
            writer.writerow([f"{distance:.1f}", shown, carrier, late])


if __name__ == "__main__":
    write_csv(pathlib.Path(sys.argv[1]))
