import pathlib

import numpy as np
import tensorflow as tf

from pipelines.serving.model import Model
from pipelines.serving.saved_model import read_signatures


def test_signatures_are_read_with_the_default_one_first(exported):
    found = read_signatures(pathlib.Path(exported("classifier")))
    assert list(found) == ["serving_default", "classification", "predict", "regression", "serving_rows"]
    assert [one.method for one in found.values()] == [
        "classify", "classify", "predict", "regress", "predict",
    ]  # fmt: skip
    assert [one.takes_examples for one in found.values()] == [True] * 4 + [False]
    assert found["serving_rows"].columns == found["predict"].columns


def test_columns_that_keras_parses_in_a_function_are_found(tmp_path):
    """A run_fn may write such a model."""
    spec = {
        "x": tf.io.FixedLenFeature([], tf.float32),
        "n": tf.io.FixedLenFeature([], tf.int64, default_value=5),
    }

    class Serving(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serve(self, examples):
            parsed = tf.io.parse_example(examples, spec)
            return {"total": parsed["x"] + tf.cast(parsed["n"], tf.float32)}

    module = Serving()
    folder = tmp_path / "3"
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.serve})
    model = Model(folder)
    columns = {name: (one.type, one.is_required) for name, one in model.columns.items()}
    assert columns == {"x": ("FLOAT", True), "n": ("INT", False)}
    np.testing.assert_array_equal(model.predict([{"x": 1}, {"x": 2, "n": 7}])["total"], [6, 9])
