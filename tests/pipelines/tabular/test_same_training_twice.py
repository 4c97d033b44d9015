"""The generic trainer_fn twice on the same rows: every variable is the same to the last digit."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core
from pipelines.tabular import training
from pipelines.tabular.plan import TextFeature
from pipelines.tabular.preprocessing import BUCKET_KEY, NUMERIC_KEY
from tests.circles import in_circles
from tests.pipelines.tabular.one_number_one_city import (
    BINARY,
    REGRESSION,
    WithNotes,
    make_plan,
    serialize,
    trainer_args,
)

NUM_ROWS = 900
NUM_WORDS = 50
LABELS = {"classification": BINARY, "regression": REGRESSION}


def rows(problem):
    """Yields tf.Examples."""
    draw = np.random.default_rng(8)
    for _ in range(NUM_ROWS):
        x, city = float(draw.normal()), int(draw.integers(3))
        words = draw.integers(NUM_WORDS, size=draw.integers(1, 9)).tolist()
        score = float(x + city / 2 - 1 + (3 in words) + draw.normal())
        label = score if problem == "regression" else (b"yes" if score > 0 else b"no")
        features = {NUMERIC_KEY: x, BUCKET_KEY: int(x > 0), "category_0": city, "text_0": words}
        yield tf.train.Example.FromString(serialize(**features, label=label))


def in_order(example, is_reversed):
    """Returns a tf.Example whose features stand in an order: an encoder may write them in any."""
    entries = [
        tf.train.Features(feature={name: feature}).SerializeToString()
        for name, feature in sorted(example.features.feature.items(), reverse=is_reversed)
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
        dtype = tf.float32 if problem == "regression" else tf.string
        monkeypatch.setattr(training.tft, "TFTransformOutput", lambda path: WithNotes(dtype))
        path = str(tmp_path / f"{name}.gz")
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for example in rows(problem):
                writer.write(in_order(example, is_reversed))
        settings = {"batch_size": 64, "train_steps": 110, "hidden_units": (16, 8), "dropout": 0.2}
        plan = make_plan(LABELS[problem], **settings, seed=seed, early_stopping=True)
        text = (TextFeature(column="review", hash_buckets=NUM_WORDS, has_pairs=False),)
        args = trainer_args(plan.model_copy(update={"text": text}), path, tmp_path / name)
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
