"""Transformed examples of one number and one category, and a plan for them; a text may be added."""

import types

import tensorflow as tf

from pipelines.tabular.plan import CategoricalFeature, LabelPlan, NumericFeature, TabularPlan, TrainingPlan
from pipelines.tabular.preprocessing import BUCKET_KEY, NUMERIC_KEY, VOCABULARY

BINARY = LabelPlan(column="y", problem_type="binary", values="text", classes=("no", "yes"))
REGRESSION = LabelPlan(column="y", problem_type="regression", values="number", mean=1_000.0, stddev=200.0)


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
        return len(self.vocabulary_by_name(name))

    def vocabulary_by_name(self, name):
        assert name == VOCABULARY
        return [b"0=Rome", b"0=Oslo", b"0=Bern"]

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


class WithNotes(FakeTransform):
    """Has a text, too, which is the ids of its words."""

    def transformed_feature_spec(self):
        return {**super().transformed_feature_spec(), "text_0": tf.io.VarLenFeature(tf.int64)}

    def transform_raw_features(self, raw):
        return {**super().transform_raw_features(raw), "text_0": raw["note"]}


SCHEMA = {"x": tf.io.VarLenFeature(tf.float32), "city": tf.io.VarLenFeature(tf.int64)}


def serialize(**features):
    """Returns a tf.Example; a list holds integers."""
    result = tf.train.Example()
    for name, value in features.items():
        feature = result.features.feature[name]
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        elif isinstance(value, int | list):
            feature.int64_list.value.extend(value if isinstance(value, list) else [value])
        else:
            feature.float_list.value.append(value)
    return result.SerializeToString()


def trainer_args(plan, path, folder, **changes):
    """Returns the arguments of trainer_fn for a file of examples, which trains and evaluates."""
    args = {
        "hyperparameters": None, "trial": None, "train_steps": None, "transform_output": "unused",
        "custom_config": plan.training_config(), "train_files": [path], "eval_files": [path],
        "serving_model_dir": str(folder / "model"), "model_run_dir": str(folder),
    }  # fmt: skip
    return types.SimpleNamespace(**{**args, **changes})
