import importlib
import sys
import types

import pytest
import tensorflow as tf

import estimator_core

OLD_CODE = """
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
import tensorflow.estimator
from tensorflow.compat.v1 import estimator as estimator_v1
from tensorflow.estimator.export import ServingInputReceiver
from tensorflow_estimator import estimator as standalone


def train(model_dir):
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(weight * features["x"] - labels))
        optimizer = tf1.train.GradientDescentOptimizer(0.25)
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = tf.estimator.Estimator(model_fn, model_dir)
    x, y = np.ones(2, np.float32), np.full(2, 2.0, np.float32)
    input_fn = tf1.estimator.inputs.numpy_input_fn(
        {"x": x}, y, batch_size=2, num_epochs=None, shuffle=False
    )
    return estimator.train(input_fn, steps=2).get_variable_value("weight")
"""


def test_code_that_was_never_changed_runs(uninstalled, tmp_path, monkeypatch):
    (tmp_path / "old_code.py").write_text(OLD_CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    estimator_core.install()
    old_code = importlib.import_module("old_code")
    # After n steps the weight is 2 - 2 / 2^n.
    assert old_code.train(str(tmp_path / "model")) == pytest.approx(1.5)
    assert old_code.estimator_v1 is estimator_core.v1
    assert old_code.standalone is estimator_core.v1
    assert old_code.ServingInputReceiver is estimator_core.export.ServingInputReceiver
    sys.modules.pop("old_code")


def test_all_paths_lead_here_and_twice_is_once(uninstalled):
    estimator_core.install()
    estimator_core.install()
    assert tf.estimator is estimator_core
    assert tf.compat.v1.estimator is estimator_core.v1
    assert tf.compat.v2.estimator is estimator_core
    for path, module in (
        ("tensorflow.estimator", estimator_core),
        ("tensorflow.estimator.experimental", estimator_core.experimental),
        ("tensorflow.compat.v1.estimator", estimator_core.v1),
        ("tensorflow.compat.v1.estimator.inputs", estimator_core.inputs),
        ("tensorflow.compat.v2.estimator", estimator_core),
    ):
        assert importlib.import_module(path) is module, path


def test_model_to_estimator_is_installed_in_tf_keras(uninstalled):
    estimator_core.install()
    assert tf.keras.estimator.model_to_estimator is estimator_core.model_to_estimator
    assert tf.compat.v2.keras.estimator.model_to_estimator is estimator_core.model_to_estimator
    names = {}
    exec("from tensorflow.keras.estimator import model_to_estimator", names)
    assert names["model_to_estimator"] is estimator_core.model_to_estimator


def test_a_working_tf_estimator_is_left_alone(uninstalled, monkeypatch):
    theirs = types.ModuleType("tensorflow_estimator.python.estimator.api._v2.estimator")
    monkeypatch.setattr(tf, "estimator", theirs, raising=False)
    with pytest.raises(RuntimeError, match=f"its own tf.estimator.*{tf.__version__}"):
        estimator_core.install()
    assert tf.estimator is theirs
    assert "tensorflow.estimator" not in sys.modules
