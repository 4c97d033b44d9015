"""A table of few rows and two thousand columns, from the CSV to the answers of the served model."""

import csv

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow  # a whole pipeline

NUM_ROWS, NUM_NUMBERS, NUM_CATEGORIES = 64, 1_800, 200


@pytest.fixture(scope="module")
def run(run_pipeline, tmp_path_factory):
    """The columns of a run, and the served model."""
    folder = tmp_path_factory.mktemp("wide")
    draw = np.random.default_rng(1)
    is_yes = draw.integers(0, 2, NUM_ROWS)
    numbers = draw.normal(size=(NUM_ROWS, NUM_NUMBERS))
    numbers[:, ::5] += 2.0 * is_yes[:, None] - 1  # each fifth column tells a little
    columns = {f"n{at}": [f"{x:.4f}" for x in numbers[:, at]] for at in range(NUM_NUMBERS)}
    for at in range(NUM_CATEGORIES):
        columns[f"c{at}"] = draw.choice(["red", "green", "blue", ""], NUM_ROWS).tolist()
    columns["y"] = ["yes" if x else "no" for x in is_yes]
    with (folder / "wide.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    root = folder / "root"
    code, last, shown = run_pipeline(folder / "wide.csv", root)
    assert (code, last["status"]) == (0, "pushed"), shown
    return columns, tf.saved_model.load(str(root / "serving" / last["version"]))


def test_the_served_model_takes_each_column_as_an_input_and_is_mostly_right(run):
    columns, model = run
    inputs = model.signatures["serving_rows"].structured_input_signature[1]
    assert set(inputs) == set(columns) - {"y"}
    assert inputs["n3"].dtype == tf.float32
    assert inputs["c3"].dtype == tf.string
    rows = {
        name: tf.constant(values if name[0] == "c" else np.float32(values))
        for name, values in columns.items()
        if name != "y"
    }
    answers = model.signatures["serving_rows"](**rows)
    found = answers["classes"].numpy()[:, 0].astype(str)
    assert (found == np.array(columns["y"])).mean() > 0.9
