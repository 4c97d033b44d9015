"""Boosted trees compared with LightGBM used directly: training, serving and metrics.

python benchmarks/boosted_trees.py [--rows N] [--serving-rows N] [--trees N] [--rounds N]

Both train on the same float32 table in memory, with the same parameters, in turns. Our seconds are those of
`Estimator.train`, from the call to the last checkpoint. Serving calls the `SavedModel` signature and
`Booster.predict` once over the same rows.
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import tensorflow as tf
from sklearn import metrics

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import estimator_core as est
from benchmarks import tables

COLUMNS = 30
PARAMETERS = {
    "objective": "binary",
    "max_depth": 6,
    "num_leaves": 64,
    "learning_rate": 0.1,
    "max_bin": 100,
    "min_data_in_leaf": 1,
    "min_sum_hessian_in_leaf": 0,
    "min_data_in_bin": 1,
    "boost_from_average": False,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


def make_table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns float32 `[rows, COLUMNS]`, a fiftieth of it missing, and labels `[rows]`."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    score = table[:, 0] * table[:, 1] + np.sin(2 * table[:, 2]) + table[:, 3]
    labels = (score + rng.normal(size=rows) > 0).astype(np.int64)
    table[rng.random(table.shape) < 0.02] = np.nan
    return table, labels


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float, float]:
    """Returns the result of a function, its seconds and its processor seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return result, time.perf_counter() - start, time.process_time() - cpu


def train_ours(table: np.ndarray, labels: np.ndarray, trees: int, model_dir: str) -> Any:
    """Trains the Estimator on one batch."""
    column = tf.feature_column.numeric_column("x", shape=(COLUMNS,))
    model = est.BoostedTreesClassifier([column], 1, n_trees=trees, model_dir=model_dir)
    input_fn = est.inputs.numpy_input_fn({"x": table}, labels, len(labels), 1, shuffle=False)
    return model.train(input_fn)


def train_library(table: np.ndarray, labels: np.ndarray, trees: int) -> Any:
    """Trains LightGBM."""
    dataset = lightgbm.Dataset(table, labels, params=PARAMETERS)
    return lightgbm.train(PARAMETERS, dataset, trees)


def serve(signature: Any, rows: tf.Tensor) -> np.ndarray:
    """Returns the probabilities of an exported model, `[rows]`."""
    return signature(x=rows)["logistic"].numpy()[:, 0]


def main() -> None:
    """Prints a table of seconds and ratios, and the differences of metrics and predictions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--serving-rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("tensorflow").setLevel(logging.ERROR)

    table, labels = make_table(options.rows)
    unseen, unseen_labels = make_table(options.serving_rows)
    training, serving = [], []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            model, *ours = timed(train_ours, table, labels, options.trees, f"{folder}/model")
            library, *theirs = timed(train_library, table, labels, options.trees)
            training.append((ours, theirs))
            receiver_fn = est.export.build_raw_serving_input_receiver_fn(
                {"x": tf.TensorSpec([None, COLUMNS], tf.float32)}
            )
            path = model.export_saved_model(f"{folder}/export", receiver_fn).decode()
            served = tf.saved_model.load(path).signatures["predict"]
        rows = tf.constant(unseen)
        served(x=rows[:10])
        for _ in range(3):
            answer, *ours = timed(serve, served, rows)
            expected, *theirs = timed(library.predict, unseen)
            serving.append((ours, theirs))

    rows_of_table = [_row(f"training, {options.rows:,} rows", training)]
    rows_of_table.append(_row(f"serving, {options.serving_rows:,} rows", serving))
    header = ["work", "ours, s", "LightGBM, s", "ratio", "ratio of processor time"]
    print(tables.format_table(header, rows_of_table))
    rates = [options.serving_rows / statistics.median(pair[who][0] for pair in serving) for who in (0, 1)]
    print(f"Rows served a second: {rates[0]:,.0f}, LightGBM {rates[1]:,.0f}")
    print(f"Largest difference between predictions: {np.abs(answer - expected).max():.1e}")
    for name, metric in (("log loss", metrics.log_loss), ("AUC", metrics.roc_auc_score)):
        own, other = metric(unseen_labels, answer), metric(unseen_labels, expected)
        print(f"{name}: {own:.8f}, LightGBM {other:.8f}")


def _row(name: str, pairs: list[Any]) -> list[str]:
    seconds = [statistics.median(pair[who][0] for pair in pairs) for who in (0, 1)]
    ratios = [statistics.median(ours[kind] / theirs[kind] for ours, theirs in pairs) for kind in (0, 1)]
    return [name, *(f"{value:.2f}" for value in seconds), *(f"{value:.2f}" for value in ratios)]


if __name__ == "__main__":
    main()
