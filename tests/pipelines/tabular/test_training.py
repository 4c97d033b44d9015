"""The generic trainer_fn on transformed examples whose best answer is known."""

import components  # noqa: I001  Before TFX: makes TFDV importable.

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
from pipelines.tabular.preprocessing import BUCKET_KEY, NUMERIC_KEY, VOCABULARY

assert components

BINARY = LabelPlan(column="y", problem_type="binary", values="text", classes=("no", "yes"))
REGRESSION = LabelPlan(
    column="y", problem_type="regression", values="number", mean=1_000.0, stddev=200.0
)


def make_plan(label, **changes):
    settings = {
        "batch_size": 32, "train_steps": 120, "eval_steps": None, "hidden_units": (8,),
        "learning_rate": 0.03, "linear_learning_rate": 0.1, "dropout": 0.0, "seed": 1,
    }  # fmt: skip
    return TabularPlan(
        label=label,
        numeric=(NumericFeature(column="x", center=0.0, has_missing=False),),
        categorical=(CategoricalFeature(column="city", num_values=3),),
        num_buckets=2,
        ignored={},
        slices=(),
        training=TrainingPlan(**{**settings, **changes}),
    )


class FakeTransform:
    """Transform's output for one number, which is its own z-score, and one category."""

    def __init__(self, label_dtype):
        self._label_dtype = label_dtype

    def vocabulary_size_by_name(self, name):
        assert name == VOCABULARY
        return 3

    def transformed_feature_spec(self):
        return {
            NUMERIC_KEY: tf.io.FixedLenFeature([1], tf.float32),
            BUCKET_KEY: tf.io.FixedLenFeature([1], tf.int64),
            "category_0": tf.io.FixedLenFeature([], tf.int64),
            "label": tf.io.FixedLenFeature([], self._label_dtype),
        }

    def transform_raw_features(self, raw):
        x = tf.sparse.to_dense(raw["x"])
        features = {
            NUMERIC_KEY: x,
            BUCKET_KEY: tf.cast(x > 0, tf.int64),
            "category_0": tf.sparse.to_dense(raw["city"])[:, 0],
        }
        if "y" in raw:
            features["label"] = tf.sparse.to_dense(raw["y"])[:, 0]
        return features


SCHEMA = {
    "x": tf.io.VarLenFeature(tf.float32),
    "city": tf.io.VarLenFeature(tf.int64),
}


def serialize(**features):
    result = tf.train.Example()
    for name, value in features.items():
        feature = result.features.feature[name]
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        else:
            feature.float_list.value.append(value)
    return result.SerializeToString()


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Returns a function that calls trainer_fn on examples with the labels of `label_of(x, city)`."""

    def make(plan, label_of, train_steps=None):
        is_text = plan.label.problem_type != "regression"
        dtype = tf.string if is_text else tf.float32
        monkeypatch.setattr(training.tft, "TFTransformOutput", lambda path: FakeTransform(dtype))
        path = str(tmp_path / "data.gz")
        random = np.random.default_rng(4)
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for x, city in zip(random.uniform(-2, 2, 300), random.integers(0, 3, 300), strict=True):
                label = label_of(float(x), int(city))
                features = {NUMERIC_KEY: float(x), BUCKET_KEY: int(x > 0), "category_0": int(city)}
                writer.write(serialize(**features, label=label))
        args = types.SimpleNamespace(
            custom_config=plan.training_config(),
            transform_output="unused",
            serving_model_dir=str(tmp_path / "model"),
            train_steps=train_steps,
            train_files=[path],
            eval_files=[path],
        )
        schema = schema_utils.schema_from_feature_spec({**SCHEMA, "y": tf.io.VarLenFeature(dtype)})
        return training.trainer_fn(args, schema)

    return make


def test_a_classifier_learns_serves_and_is_evaluated(call, tmp_path):
    made = call(make_plan(BINARY), lambda x, city: b"yes" if x + city > 1 else b"no")
    estimator_core.train_and_evaluate(made["estimator"], made["train_spec"], made["eval_spec"])
    assert made["estimator"].get_variable_value("global_step") == 120
    exports = tmp_path / "model" / "export" / training.EXPORTER_NAME
    (export,) = exports.iterdir()
    signature = tf.saved_model.load(str(export)).signatures["predict"]
    # Raw examples without the label: x + city is 2.5, 0.5 and -0.5; the limit is 1.
    examples = [serialize(x=1.5, city=1), serialize(x=0.5, city=0), serialize(x=-1.5, city=1)]
    classes = signature(examples=tf.constant(examples))["classes"].numpy().ravel().tolist()
    assert classes == [b"yes", b"no", b"no"]
    receiver = tf.Graph()
    with receiver.as_default():
        inputs = made["eval_input_receiver_fn"]()
        assert inputs.labels.dtype == tf.string
        assert "label" not in inputs.features


def test_a_regressor_answers_in_the_units_of_the_label(call):
    made = call(make_plan(REGRESSION), lambda x, city: 1_000.0 + 100 * x)
    made["estimator"].train(made["train_spec"].input_fn, steps=120)
    metrics = made["estimator"].evaluate(made["eval_spec"].input_fn)
    # A model that answers 1,000 has the variance of 100 * uniform(-2, 2): 100**2 * 16 / 12.
    assert metrics["average_loss"] < 0.02 * 13_333
    assert metrics["label/mean"] == pytest.approx(1_000, abs=30)


@pytest.mark.parametrize(("train_steps", "max_steps"), [(None, 7), (0, 7), (50, 50)])
def test_the_trainers_steps_go_before_those_of_the_plan(call, train_steps, max_steps):
    plan = make_plan(BINARY, train_steps=7, eval_steps=5)
    made = call(plan, lambda x, city: b"yes", train_steps)
    assert made["train_spec"].max_steps == max_steps
    assert made["eval_spec"].steps == 5


def test_training_data_repeat_and_evaluation_data_do_not(call):
    made = call(make_plan(BINARY), lambda x, city: b"no")
    sizes = [int(tf.shape(label)[0]) for _, label in made["eval_spec"].input_fn()]
    assert sizes == [32] * 9 + [12]
    train = made["train_spec"].input_fn().take(20)
    assert [int(tf.shape(label)[0]) for _, label in train] == [32] * 20
    features, label = next(iter(train))
    assert sorted(features) == sorted([BUCKET_KEY, "category_0", NUMERIC_KEY])
    assert set(label.numpy()) == {b"no"}


def test_rows_that_are_held_out_are_not_trained_on(call):
    made = call(make_plan(BINARY, early_stopping=True), lambda x, city: b"no")
    seen = {
        float(x)
        for features, _ in made["train_spec"].input_fn().take(30)
        for x in features[NUMERIC_KEY].numpy().ravel()
    }
    held_out = [
        float(x)
        for features, _ in made["eval_spec"].input_fn()
        for x in features[NUMERIC_KEY].numpy().ravel()
    ]
    assert 30 < len(held_out) < 70  # a sixth of 300
    assert not seen & set(held_out)
    assert len(seen) + len(held_out) == 300


def test_training_stops_when_it_only_learns_by_heart(call):
    """The labels are noise: the loss on rows that were held out is lowest near the beginning."""
    noise = np.random.default_rng(7)
    plan = make_plan(
        BINARY, early_stopping=True, train_steps=1_600, hidden_units=(64, 64), learning_rate=0.02
    )
    made = call(plan, lambda x, city: noise.choice([b"yes", b"no"]))
    estimator = made["estimator"]
    assert estimator.config.save_checkpoints_steps == 200
    metrics, _ = estimator_core.train_and_evaluate(estimator, made["train_spec"], made["eval_spec"])
    best = int(estimator.latest_checkpoint().rpartition("-")[2])
    assert best < metrics["global_step"] < 1_600
    at_best = estimator.evaluate(made["eval_spec"].input_fn)
    assert at_best["global_step"] == best
    assert at_best["loss"] < metrics["loss"]


def test_the_estimator_has_the_plans_settings(tmp_path):
    plan = make_plan(BINARY, train_steps=2_500, seed=9)
    estimator = training.build_estimator(plan, FakeTransform(tf.string), str(tmp_path))
    assert estimator.config.tf_random_seed == 9
    assert estimator.config.save_checkpoints_steps == 500  # a fifth of the steps
    short = training.build_estimator(make_plan(BINARY), FakeTransform(tf.string), str(tmp_path))
    assert short.config.save_checkpoints_steps == 100


def test_words_are_columns_of_both_parts(tmp_path):
    plan = make_plan(BINARY).model_copy(
        update={"text": (TextFeature(column="note", hash_buckets=50),)}
    )
    linear, dnn = training._feature_columns(plan, FakeTransform(tf.string))
    assert (linear[-1].key, linear[-1].num_buckets) == ("text_0", 50)
    assert dnn[-1].categorical_column == linear[-1]
    assert dnn[-1].combiner == "sqrtn"  # long texts weigh no more than short ones
