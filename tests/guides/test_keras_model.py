"""A Keras model with a fixed body trains and evaluates as an Estimator."""

import numpy as np
import pytest


@pytest.mark.slow  # builds MobileNetV2 three times
def test_a_keras_model(run_program, caplog):
    names = run_program("keras_model")
    result = names["estimator"].evaluate(lambda: names["pictures"](16), steps=5)
    assert list(result) == ["accuracy", "loss", "global_step"]
    assert result["global_step"] == 30
    assert np.isfinite(result["loss"])
    assert "Calling model_fn." in caplog.text
    assert "Saving dict for global step 30: accuracy = " in caplog.text
