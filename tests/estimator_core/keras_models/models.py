"""Keras models and data that several tests use."""

import keras
import numpy as np
import tensorflow as tf

_RANDOM = np.random.RandomState(0)

X = _RANDOM.randn(48, 4).astype(np.float32)

Y = (X.sum(axis=1, keepdims=True) > 0).astype(np.float32)

WEIGHTS = _RANDOM.uniform(0.1, 2.0, 48).astype(np.float32)

WIDE, DEEP = X[:, :2], X[:, 2:]

TWO_FEATURES = {"by name": {"deep": DEEP, "wide": WIDE}, "in order": (WIDE, DEEP)}

TWO_LABELS = {"by name": {"kind": Y, "value": X[:, :1]}, "in order": (X[:, :1], Y)}


class Tower(keras.Model):
    """A subclassed model with a configuration."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.hidden = keras.layers.Dense(units, activation="relu")
        self.norm = keras.layers.BatchNormalization()
        self.out = keras.layers.Dense(1)

    def get_config(self):
        return {**super().get_config(), "units": self.units}

    def call(self, inputs, training=False):
        return self.out(self.norm(self.hidden(inputs), training=training))


def functional(optimizer="adam", **compile_args):
    inputs = keras.Input((4,), name="x")
    hidden = keras.layers.Dense(6, "relu", name="hidden", kernel_regularizer="l2")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    hidden = keras.layers.Dropout(0.4, seed=7)(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid", name="out")(hidden))
    model.compile(optimizer, "binary_crossentropy", **(compile_args or {"metrics": ["accuracy"]}))
    return model


def two_by_two():
    wide, deep = keras.Input((2,), name="wide"), keras.Input((2,), name="deep")
    joined = keras.layers.Concatenate()([wide, deep])
    value = keras.layers.Dense(1, name="value")(joined)
    model = keras.Model([wide, deep], [value, keras.layers.Dense(2, "softmax", name="kind")(joined)])
    model.compile(
        "adam",
        {"value": "mse", "kind": "sparse_categorical_crossentropy"},
        loss_weights={"value": 0.3, "kind": 2.0},
        metrics={"value": ["mae"], "kind": ["accuracy"]},
        weighted_metrics={"value": ["mse"]},
    )
    return model


class Scaled(keras.metrics.Metric):
    """The sum of predictions by a factor, in several places; its configuration is left out."""

    def __init__(self, factor=2.0, places=2, name="scaled", **kwargs):
        super().__init__(name=name, **kwargs)
        self.factor = factor
        self.total = self.add_weight(shape=(places,), initializer="zeros", name="total")

    def update_state(self, labels, predictions, sample_weight=None):
        self.total.assign_add(self.factor * keras.ops.ones_like(self.total))

    def result(self):
        return keras.ops.sum(self.total)


def batches(x=X, y=Y):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
