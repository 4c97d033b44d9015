"""A trained classifier of the columns `x` and `word`, exported with serving functions good and bad."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

import estimator_core as estimator
from components.serving_check import executor
from components.serving_check.executor import load_serving_check
from components.serving_check.settings import ServingCheckSettings

SPEC = {
    "x": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0]),
    "word": tf.io.FixedLenFeature([1], tf.string, default_value=[""]),
}
LABEL = {"y": tf.io.FixedLenFeature([1], tf.int64)}


def rows(count=300):
    """Rows whose label follows from both columns; every 10th has no word."""
    random = np.random.default_rng(5)
    found = []
    for i in range(count):
        x, word = float(random.uniform(-3, 3)), "ab"[i % 2]
        is_positive = x + 2 * (word == "a") + random.normal() > 1
        found.append({"x": x, "word": None if i % 10 == 0 else word, "y": int(is_positive)})
    return found


class Trained(NamedTuple):
    """An Estimator with a checkpoint after a few steps and one at the end of the training."""

    estimator: Any
    early: str
    eval_model: Path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    given = rows()
    features = {
        "x": np.array([[row["x"]] for row in given], np.float32),
        "word": np.array([[(row["word"] or "").encode()] for row in given], object),
    }
    labels = np.array([[row["y"]] for row in given])
    word = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
    classifier = estimator.LinearClassifier(
        [tf.feature_column.numeric_column("x"), word],
        model_dir=str(folder / "model_dir"),
        optimizer=tf.keras.optimizers.Adam(0.05),
        config=estimator.RunConfig(tf_random_seed=1, keep_checkpoint_max=None),
    )

    def input_fn():
        return tf.data.Dataset.from_tensors((features, labels)).repeat()

    def eval_input_receiver_fn():
        raw = estimator.export.build_parsing_serving_input_receiver_fn({**SPEC, **LABEL})()
        parsed = dict(raw.features)
        return estimator.export.EvalInputReceiver(
            features=parsed, receiver_tensors=raw.receiver_tensors, labels=parsed.pop("y")
        )

    classifier.train(input_fn, steps=10)
    early = classifier.latest_checkpoint()
    classifier.train(input_fn, steps=150)
    exported = classifier.experimental_export_all_saved_models(
        str(folder / "eval"), {estimator.ModeKeys.EVAL: eval_input_receiver_fn}
    )
    return Trained(classifier, early, Path(exported.decode()))


def receiver(change=dict, spec=SPEC):
    """Returns a serving_input_receiver_fn that changes the parsed features."""

    def receive():
        raw = estimator.export.build_parsing_serving_input_receiver_fn(spec)()
        return estimator.export.ServingInputReceiver(change(dict(raw.features)), raw.receiver_tensors)

    return receive


@pytest.fixture
def make_served(trained, tmp_path, make_artifact):
    """Returns a function that makes a Model with a serving and an evaluation model."""

    def make(receive, checkpoint=None, judged=True):
        exported = trained.estimator.export_saved_model(
            str(tmp_path / "exported"), receive, checkpoint_path=checkpoint
        )
        artifact = make_artifact(standard_artifacts.Model)
        shutil.copytree(exported.decode(), Path(artifact.uri) / "Format-Serving")
        if judged:
            shutil.copytree(trained.eval_model, Path(artifact.uri) / "Format-TFMA")
        return artifact

    return make


@pytest.fixture
def check(make_artifact, make_examples):
    """Returns a function that executes the ServingCheck: the result, and the blessing."""

    def run(model, blessed=1, held=0, **settings):
        blessing = make_artifact(standard_artifacts.InfraBlessing)
        judged = make_artifact(standard_artifacts.ModelBlessing, blessed=blessed, held=held)
        executor.Executor().Do(
            {"model": [model], "examples": [make_examples(rows())], "model_blessing": [judged]},
            {"blessing": [blessing]},
            {"label": "y", "settings": ServingCheckSettings(**settings).to_json()},
        )
        return load_serving_check(blessing.uri), blessing

    return run
