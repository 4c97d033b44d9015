"""Runs the programs of the Estimator guide, with local data in place of its downloads."""

import csv
import logging
import pathlib
import sys
import tempfile
import types

import numpy as np
import pytest
import tensorflow as tf

COLUMNS = [
    "survived",
    *("sex", "age", "n_siblings_spouses", "parch", "fare"),
    *("class", "deck", "embark_town", "alone"),
]
PROGRAMS = pathlib.Path(__file__).parent / "programs"


@pytest.fixture(params=["import changed", "installed"])
def run_program(request, uninstalled, monkeypatch, tmp_path, caplog):
    """Returns a function that runs a program in the test's directory and returns its names.

    It runs with the one import changed by which a user gets at our names, and as it is after
    `estimator_core.install()`.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", _tensorflow_datasets())
    monkeypatch.setattr(tf.keras.utils, "get_file", _get_file)
    caplog.set_level(logging.INFO)

    def run(name):
        source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
        if request.param == "installed":
            source = "import estimator_core; estimator_core.install(); " + source
        else:
            for old in ("tf.keras.estimator", "tf.estimator"):
                source = source.replace(old, "tf_estimator")
            source = "import estimator_core as tf_estimator; " + source
        names = {"__name__": "__main__"}
        exec(compile(source, PROGRAMS / f"{name}.py", "exec"), names)
        return names

    return run


def _get_file(fname, origin):
    """Writes passengers like the Titanic's, more of whom survive in the better classes."""
    assert origin.endswith("/titanic/train.csv")
    rng = np.random.default_rng(0)
    with open(fname, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "survived",
                "sex",
                "age",
                "n_siblings_spouses",
                "parch",
                "fare",
                "class",
                "deck",
                "embark_town",
                "alone",
            ]
        )
        for _ in range(627):
            cls = rng.choice(["First", "Second", "Third"], p=[0.3, 0.2, 0.5])
            survived = int(rng.random() < {"First": 0.8, "Second": 0.5, "Third": 0.1}[cls])
            town = rng.choice(["Southampton", "Cherbourg", "Queenstown", "unknown"])
            age, fare = round(rng.uniform(1, 80), 1), round(rng.uniform(5, 90), 4)
            sex, alone = rng.choice(["male", "female"]), rng.choice(["y", "n"])
            writer.writerow([survived, sex, age, 0, 0, fare, cls, "unknown", town, alone])
    return fname


def _tensorflow_datasets():
    """Returns a module whose `load` gives generated images: the dogs are the brighter ones."""

    def images():
        rng = np.random.default_rng(0)
        for number in range(1600):
            label = number % 2
            image = rng.integers(0, 96, (60, 80, 3)) + 128 * label
            yield image.astype(np.uint8), label

    def load(name, as_supervised):
        assert (name, as_supervised) == ("cats_vs_dogs", True)
        image = tf.TensorSpec([None, None, 3], tf.uint8)
        label = tf.TensorSpec([], tf.int64)
        return {"train": tf.data.Dataset.from_generator(images, output_signature=(image, label))}

    module = types.ModuleType("tensorflow_datasets")
    module.load = load
    return module
