from pathlib import Path

import pytest
import tensorflow as tf

from pipelines.runs.checks.model_description import describe_signatures, folder_size


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
        def serve(self, examples):
            return {"length": tf.strings.length(examples)}

        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, "x"),
                                      tf.TensorSpec([None, 3], tf.int64, "y")])  # fmt: skip
        def other(self, x, y):
            return {"sum": tf.reduce_sum(x) + tf.reduce_sum(tf.cast(y, tf.float32))}

    model = Model()
    target = str(tmp_path_factory.mktemp("model"))
    signatures = {"a_first": model.other, "serving_default": model.serve}
    tf.saved_model.save(model, target, signatures=signatures)
    return target


def test_inputs_outputs_types_and_shapes(folder):
    default, other = describe_signatures(Path(folder))
    assert default == {
        "name": "serving_default",
        "method": "predict",
        "inputs": [{"name": "examples", "type": "string", "shape": [None]}],
        "outputs": [{"name": "length", "type": "int32", "shape": [None]}],
    }
    assert other["inputs"] == [
        {"name": "x", "type": "float32", "shape": None},
        {"name": "y", "type": "int64", "shape": [None, 3]},
    ]


def test_the_size_is_that_of_all_files(folder, tmp_path):
    (tmp_path / "variables").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "variables" / "b").write_bytes(b"123")
    assert folder_size(str(tmp_path)) == 8
    assert folder_size(folder) > 1_000
