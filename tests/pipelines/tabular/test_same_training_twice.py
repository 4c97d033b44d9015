"""The generic trainer_fn twice on the same rows: every variable is the same to the last digit."""

import types

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core
from pipelines.tabular import training
from pipelines.tabular.plan import (
    CategoricalFeature,
    LabelPlan,
    NumericFeature,
    TabularPlan,
    TextFeature,
    TrainingPlan,
)
from pipelines.tabular.preprocessing import BUCKET_KEY, IS_MISSING_KEY, NUMERIC_KEY
from tests.circles import in_circles

NUM_ROWS = 900
NUM_WORDS = 50

LABELS = {
    "classification": LabelPlan(column="y", problem_type="binary", values="text", classes=("no", "yes")),
    "regression": LabelPlan(column="y", problem_type="regression", values="number", mean=3.0, stddev=2.0),
}


def make_plan(problem, seed):
    return TabularPlan(
        label=LABELS[problem],
        numeric=tuple(
            NumericFeature(column=name, center=0.0, has_missing=name == "b") for name in "ab"
        ),
        categorical=(CategoricalFeature(column="city", num_values=9),),
        text=(TextFeature(column="review", hash_buckets=NUM_WORDS, has_pairs=False),),
        num_buckets=2,
        ignored={},
        slices=(),
        training=TrainingPlan(
            batch_size=64, train_steps=110, eval_steps=None, hidden_units=(16, 8),
            learning_rate=0.01, linear_learning_rate=0.05, dropout=0.2, seed=seed,
            early_stopping=True,
        ),
    )  # fmt: skip


class FakeTransform:
    """Transform's output for two numbers, a category and a text."""

    def __init__(self, problem):
        self._label = tf.float32 if problem == "regression" else tf.string

    def vocabulary_size_by_name(self, name):
        return 9

    def transformed_feature_spec(self):
        return {
            NUMERIC_KEY: tf.io.FixedLenFeature([2], tf.float32),
            IS_MISSING_KEY: tf.io.FixedLenFeature([1], tf.float32),
            BUCKET_KEY: tf.io.FixedLenFeature([2], tf.int64),
            "category_0": tf.io.FixedLenFeature([], tf.int64),
            "text_0": tf.io.VarLenFeature(tf.int64),
            "label": tf.io.FixedLenFeature([], self._label),
        }


def numbers(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def ids(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def rows(problem):
    """Yields the features of each row."""
    draw = np.random.default_rng(8)
    for _ in range(NUM_ROWS):
        a, b = draw.normal(size=2)
        city, words = int(draw.integers(9)), draw.integers(NUM_WORDS, size=draw.integers(1, 9))
        score = a + b / 2 + city / 4 - 1 + np.isin(3, words) + draw.normal()
        answer = [b"yes" if score > 0 else b"no"]
        yield {
            NUMERIC_KEY: numbers([a, b]),
            IS_MISSING_KEY: numbers([0.0]),
            BUCKET_KEY: ids([int(a > 0), 3 + int(b > 0)]),
            "category_0": ids([city]),
            "text_0": ids(words.tolist()),
            "label": numbers([score])
            if problem == "regression"
            else tf.train.Feature(bytes_list=tf.train.BytesList(value=answer)),
        }


def serialize(features, is_reversed):
    """Returns a tf.Example whose features stand in an order: an encoder may write them in any."""
    entries = [
        tf.train.Features(feature={name: feature}).SerializeToString()
        for name, feature in sorted(features.items(), reverse=is_reversed)
    ]
    return _delimited(b"".join(entries))


def _delimited(body):
    """Returns `body` as field 1 of a message, with its size before it."""
    size, prefix = len(body), b"\x0a"
    while size > 127:
        prefix += bytes([size % 128 + 128])
        size //= 128
    return prefix + bytes([size]) + body


@pytest.fixture
def variables(tmp_path, monkeypatch):
    """Returns a function that trains in a directory of its own; gives the checkpoint's variables."""

    def train(problem, name, seed=1, is_reversed=False):
        transform = FakeTransform(problem)
        monkeypatch.setattr(training.tft, "TFTransformOutput", lambda path: transform)
        path = tmp_path / f"{name}.gz"
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for features in rows(problem):
                writer.write(serialize(features, is_reversed))
        args = types.SimpleNamespace(
            hyperparameters=None,
            trial=None,
            custom_config=make_plan(problem, seed).training_config(),
            transform_output="unused",
            serving_model_dir=str(tmp_path / name),
            model_run_dir=str(tmp_path / name),
            train_steps=None,
            train_files=[str(path)],
            eval_files=[str(path)],
        )
        schema = schema_utils.schema_from_feature_spec({"y": tf.io.VarLenFeature(tf.string)})
        made = training.trainer_fn(args, schema)
        eval_spec = estimator_core.EvalSpec(made["eval_spec"].input_fn, throttle_secs=0)
        estimator_core.train_and_evaluate(made["estimator"], made["train_spec"], eval_spec)
        reader = tf.train.load_checkpoint(made["estimator"].latest_checkpoint())
        return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}

    return train


def differing(one, other):
    assert one.keys() == other.keys()
    return [name for name in one if one[name].tobytes() != other[name].tobytes()]


@pytest.mark.more
@pytest.mark.parametrize("problem", in_circles(LABELS, slow=["regression"]))
def test_every_variable_is_the_same_however_the_rows_are_serialized(variables, problem):
    first = variables(problem, "first")
    assert len(first) > 20
    assert differing(first, variables(problem, "second", is_reversed=True)) == []


@pytest.mark.slow
def test_another_seed_makes_another_model(variables):
    weights = [
        name
        for name in differing(variables("regression", "one"), variables("regression", "two", seed=2))
        if "hiddenlayer" in name
    ]
    assert len(weights) >= 4
