"""Writes generated days of houses: `python generate.py data.csv`."""

import csv
import pathlib
import random
import sys

HEATING = {"gas": 0.0, "heat pump": 0.6, "electric": 1.5}  # kWh for each degree below 15
NOISE = 1.5  # kWh, the standard deviation of what the columns don't tell: no model has a smaller error


def write_csv(path: pathlib.Path, rows: int = 3_000, seed: int = 1) -> None:
    """Writes `rows` days: outdoor temperature, residents, heating and weekend, and the label `kwh`."""
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["temperature", "residents", "heating", "weekend", "kwh"])
        for _ in range(rows):
            temperature, residents = round(draw.uniform(-10, 30), 1), draw.randint(1, 6)
            heating, weekend = draw.choice(list(HEATING)), draw.choice(["yes", "no", "no"])
            kwh = 3 + 1.8 * residents + 2.5 * (weekend == "yes") + draw.gauss(0, NOISE)
            kwh += HEATING[heating] * max(15 - temperature, 0)
            writer.writerow([temperature, residents, heating, weekend, round(kwh, 2)])


if __name__ == "__main__":
    write_csv(pathlib.Path(sys.argv[1]))
