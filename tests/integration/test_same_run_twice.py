"""Two runs on one CSV, in roots and processes of their own: the same model to the last digit."""

import csv
import datetime
import json
import math
import os
import pathlib
import random
import subprocess
import sys

import pytest
import tensorflow as tf

PROJECT = pathlib.Path(__file__).parents[2]
NUM_ROWS = 12_900  # two thirds of them train: more than the 8,192 of one batch in Transform
WORDS = ("good", "bad", "fast", "slow", "late", "early", "warm", "cold", "fresh", "stale", "kind", "rude")
NOT_OF_THE_MODEL = ("run_id", "version", "serving_version", "report")


def write_csv(path, problem):
    """Writes numbers with gaps, categories with tied counts, dates and texts."""
    draw = random.Random(7)
    begin = datetime.datetime(2020, 1, 1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["price", "weight", "city", "color", "ordered_at", "review", "y"])
        for number in range(NUM_ROWS):
            price, weight = draw.lognormvariate(3, 1), draw.gauss(5, 2)
            words = draw.sample(WORDS, draw.randrange(4, 9))
            score = math.log(price) - 3 + (weight - 5) / 3 + number % 40 / 40 - 0.5
            score += ("good" in words) - ("bad" in words) + draw.gauss(0, 0.7)
            writer.writerow(
                [
                    f"{price:.2f}" if draw.random() > 0.08 else "",
                    f"{weight:.3f}" if draw.random() > 0.03 else "",
                    f"city {number % 40}",
                    draw.choice(["red", "green", "blue", ""]),
                    begin + datetime.timedelta(minutes=draw.randrange(60 * 24 * 900)),
                    " ".join(words),
                    ("yes" if score > 0 else "no") if problem == "binary" else f"{100 * score:.2f}",
                ]
            )


def start(data, root):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    command = [sys.executable, "-m", "pipelines", "run", "--data", data, "--label", "y"]
    return subprocess.Popen(
        [*command, "--root", root, "--set", "trainer.train_steps=300"],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """Returns the JSON line of a run."""
    try:
        stdout, stderr = process.communicate(timeout=800)
    finally:
        process.kill()
    assert process.returncode == 0, stderr[-2_000:]
    return json.loads(stdout.splitlines()[-1])


def examples(root, component, split):
    """Returns the tf.Examples of a split in their order, each with its features by name."""
    (folder,) = root.glob(f"artifacts/{component}/*/*examples/Split-{split}")
    files = sorted(str(file) for file in folder.iterdir())
    return [
        tf.train.Example.FromString(record).SerializeToString(deterministic=True)
        for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()
    ]


def checkpoint(root):
    """Returns the step of the checkpoint that was exported, and its variables."""
    (state,) = root.glob("artifacts/Trainer/*/model_run/**/checkpoint")
    path = tf.train.latest_checkpoint(str(state.parent))
    reader = tf.train.load_checkpoint(path)
    names = sorted(reader.get_variable_to_shape_map())
    return path.rpartition("-")[2], {name: reader.get_tensor(name).tobytes() for name in names}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("problem", ["binary", "regression"])
def test_metrics_and_checkpoint_are_the_same(tmp_path, problem):
    data = tmp_path / "orders.csv"
    write_csv(data, problem)
    roots = [tmp_path / "one", tmp_path / "other"]
    # At the same time, so that each has its load and its timing.
    one, other = [finish(process) for process in [start(data, root) for root in roots]]
    assert one["status"] == "pushed"
    assert len(one["metrics"]) >= 5
    assert {key: value for key, value in one.items() if key not in NOT_OF_THE_MODEL} == {
        key: value for key, value in other.items() if key not in NOT_OF_THE_MODEL
    }
    for component in ("CsvExampleGen", "Transform"):
        for split, at_least in (("train", 8_193), ("eval", 3_000)):
            first, second = (examples(root, component, split) for root in roots)
            assert len(first) >= at_least
            assert first == second
    (step, variables), (other_step, others) = map(checkpoint, roots)
    assert step == other_step
    assert len(variables) > 10  # of trees, the fewest
    assert [name for name in variables if variables[name] != others[name]] == []
    assert variables.keys() == others.keys()
