"""A table with missing numbers and words, and LightGBM used directly on it."""

import lightgbm
import numpy as np
import tensorflow as tf

import estimator_core as est

WORDS = ("ash", "beech", "cedar")


class Table:
    """Rows of two numbers, some missing, and a word; labels depend on all of them."""

    def __init__(self, rows=400, seed=0):
        rng = np.random.default_rng(seed)
        numbers = rng.normal(size=(rows, 2)).astype(np.float32)
        self.score = numbers[:, 0] * np.where(rng.random(rows) < 0.8, numbers[:, 1], 1)
        numbers[rng.random(numbers.shape) < 0.1] = np.nan
        self.numbers = numbers
        self.word = rng.choice(WORDS, rows)
        self.score = self.score + (self.word == "beech") + 0.3 * rng.normal(size=rows)
        self.labels = (self.score > 0.3).astype(np.int64)
        self.three_classes = np.digitize(self.score, [0.0, 0.8])
        self.weights = rng.uniform(0.2, 3, size=rows).astype(np.float32)

    @property
    def features(self):
        return {"a": self.numbers[:, 0], "b": self.numbers[:, 1], "word": self.word}

    @property
    def matrix(self):
        """Returns the values of the columns: float32 `[rows, 5]`, in the order of their names."""
        is_word = np.stack([self.word == word for word in WORDS], axis=1)
        return np.concatenate([self.numbers, is_word], axis=1).astype(np.float32)

    def input_fn(self, labels=None, features=None, batch_size=None, repeat=False):
        labels = self.labels if labels is None else labels

        def make():
            dataset = tf.data.Dataset.from_tensor_slices((features or self.features, labels))
            dataset = dataset.batch(batch_size or len(labels))
            return dataset.repeat() if repeat else dataset

        return make


def columns():
    word = tf.feature_column.categorical_column_with_vocabulary_list("word", list(WORDS))
    return [
        tf.feature_column.numeric_column("a"),
        tf.feature_column.numeric_column("b"),
        tf.feature_column.indicator_column(word),
    ]


def config(model_dir, **settings):
    return est.RunConfig(model_dir=str(model_dir), **settings)


def parameters(**changes):
    """LightGBM's parameters for the defaults of the Estimators."""
    return {
        "objective": "binary", "max_depth": 3, "num_leaves": 8, "learning_rate": 0.1, "max_bin": 100,
        "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0, "min_data_in_bin": 1,
        "boost_from_average": False, "deterministic": True, "force_row_wise": True, "num_threads": 1,
        "verbosity": -1, **changes,
    }  # fmt: skip


def library_model(matrix, labels, trees, weights=None, **changes):
    """The model that LightGBM makes by itself."""
    settings = parameters(**changes)
    dataset = lightgbm.Dataset(matrix, labels, weight=weights, params=settings)
    return lightgbm.train(settings, dataset, trees)
