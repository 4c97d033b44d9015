"""Generated data of an example as features, made without TFT."""

import csv

import numpy as np


def columns(write_csv, folder, rows):
    """Returns the cells by column, as text `[rows]`."""
    file = folder / "data.csv"
    write_csv(file, rows)
    with file.open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    assert len(found) == rows
    return {name: np.array([row[name] for row in found]) for name in found[0]}


def scaled(numbers):
    """Returns numbers with mean 0 and deviation 1, float32 `[rows, 1]`; NaN becomes 0."""
    values = (numbers - np.nanmean(numbers)) / np.nanstd(numbers)
    return np.nan_to_num(values).astype(np.float32)[:, None]


def ids(words):
    """Returns the number of each word, int64 `[rows, 1]`."""
    return np.unique(words, return_inverse=True)[1].astype(np.int64).reshape(-1, 1)


def parts(features, labels, num_training):
    """Returns (features, labels) of the first rows, and of the others."""
    return tuple(
        ({name: values[rows] for name, values in features.items()}, labels[rows])
        for rows in (slice(num_training), slice(num_training, None))
    )
