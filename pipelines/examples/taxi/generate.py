"""Writes a CSV of generated taxi trips: `python -m pipelines.examples.taxi.generate --help`.

Beside the CSV goes a JSON file of the same name with what is known about the data, above all the
AUC of the true probabilities: no model can be expected to do better on unseen trips.
"""

import argparse
import csv
import itertools
import json
import pathlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipelines.examples.taxi import trips


def write_csv(path: pathlib.Path, rows: int, seed: int) -> dict[str, float]:
    """Writes `rows` trips to `path`, and returns facts about them.

    Args:
        path: CSV file; its folder is made if needed, and it appears only when it is complete.
        rows: Number of trips, at least 1. A run needs about 30 bytes of memory for each.
        seed: The same seed gives the same trips, and fewer rows are the first of more.

    Returns:
        `rows`, `seed`, `positive_rate` (the share of trips with a tip above a fifth of the fare) and
        `best_auc` (the ROC AUC of the true probabilities, to 6 digits, as ties in them depend on the
        processor; NaN when only one class occurs).

    Raises:
        ValueError: If `rows` or `seed` is out of range.
    """
    blocks = trips.generate(rows, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    probabilities, labels = [], []
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(trips.COLUMNS)
        for block in blocks:
            writer.writerows(zip(*itertools.starmap(_cells, block.columns.items()), strict=True))
            probabilities.append(block.true_probability)
            labels.append(block.good_tip)
    label = np.concatenate(labels)
    facts = {
        "rows": rows,
        "seed": seed,
        "positive_rate": float(label.mean()),
        "best_auc": round(roc_auc(label, np.concatenate(probabilities)), 6),
    }
    part.replace(path)
    return facts


def roc_auc(label: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> float:
    """Returns the area under the ROC curve: how often a positive scores above a negative.

    Args:
        label: bool [rows].
        score: float64 [rows]; higher means more likely positive. Ties count half.

    Returns:
        A number in [0, 1], or NaN when only one class occurs.
    """
    positives = int(label.sum())
    negatives = label.size - positives
    if not positives or not negatives:
        return float("nan")
    _, group, sizes = np.unique(score, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(sizes) - (sizes - 1) / 2
    rank_sum = mean_rank[group][label].sum()
    return float((rank_sum - positives * (positives + 1) / 2) / (positives * negatives))


def _cells(name: str, column: npt.NDArray[np.generic]) -> Iterable[object]:
    """Returns a column as the csv module writes it: missing is empty, whole numbers have no dot."""
    number = int if name in trips.NULLABLE_INTEGER_COLUMNS else float
    values = column.tolist()
    if column.dtype.kind != "f":
        return values
    return [None if value != value else number(value) for value in values]


def main() -> None:
    """Parses the command line, writes the files and prints the facts as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.examples.taxi.generate")
    parser.add_argument("--rows", type=int, default=15_000, help="number of trips")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same trips")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="CSV file to write")
    args = parser.parse_args()
    try:
        facts = write_csv(args.out, args.rows, args.seed)
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
