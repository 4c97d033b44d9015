"""The guide's program for a Keras model gives what the guide shows."""

import functools

import numpy as np
import pytest
import tensorflow as tf


@pytest.mark.slow  # 50 steps of MobileNetV2
@pytest.mark.parametrize("run_program", ["installed"], indirect=True)
def test_a_keras_model(run_program, monkeypatch, caplog):
    build = functools.partial(tf.keras.applications.MobileNetV2, weights=None)  # no download
    monkeypatch.setattr(tf.keras.applications, "MobileNetV2", build)
    names = run_program("keras_model")
    result = names["est_mobilenet_v2"].evaluate(lambda: names["train_input_fn"](32), steps=10)
    assert list(result) == ["accuracy", "loss", "global_step"]
    assert result["global_step"] == 50
    assert np.isfinite(result["loss"])
    assert "Calling model_fn." in caplog.text
    assert "Saving dict for global step 50: accuracy = " in caplog.text
