import numpy as np
import pytest
import tensorflow as tf

from components.serving_check.clean_process import ask_signature

ROWS = {
    "examples": [b"one", b"two", b"three"],
    "columns": {"x": [[1.5], [], [2.5]], "n": [[3], [4], []], "word": [[b"a"], [b"b"], [b"c"]]},
}


@pytest.fixture
def ask(tmp_path):
    def run(name="predict", num_calls=0, rows=ROWS, **inputs):
        specs = [tf.TensorSpec(shape, dtype, name=name) for name, (dtype, shape) in inputs.items()]

        @tf.function(input_signature=specs)
        def answer(*tensors):
            return {spec.name: tf.identity(tensor) for spec, tensor in zip(specs, tensors, strict=True)}

        tf.saved_model.save(tf.Module(), str(tmp_path), signatures={name: answer})
        return ask_signature(name, tf.saved_model.load(str(tmp_path)).signatures[name], rows, num_calls)

    return run


def test_a_single_text_that_is_no_column_is_serialized_examples(ask):
    found = ask(examples=(tf.string, [None]), num_calls=2)
    assert found["outputs"]["examples"].tolist() == ROWS["examples"]
    assert found["calls"].tolist() == [0, 2]
    assert found["outputs_of_calls"]["examples"].tolist() == [b"one", b"three"]
    assert len(found["latency_ms"]) == 2
    # One that is a column is that column.
    assert ask(word=(tf.string, [None]))["outputs"]["word"].tolist() == [b"a", b"b", b"c"]


def test_a_column_may_be_called_self(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        own = tf.compat.v1.placeholder(tf.string, [None], "own")
        outputs = {"length": tf.strings.length(own)}
        tf.compat.v1.saved_model.simple_save(session, str(tmp_path / "1"), {"self": own}, outputs)
    signature = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    rows = {**ROWS, "columns": {"self": [[b"yes"], [b"no"], [b""]]}}
    found = ask_signature("serving_default", signature, rows, num_calls=2)
    assert found["outputs"]["length"].tolist() == [3, 2, 0]
    assert found["outputs_of_calls"]["length"].tolist() == [3, 0]


def test_rows_that_lack_a_value_are_left_out(ask):
    found = ask(x=(tf.float32, [None, 1]), n=(tf.float32, [None]))
    assert found["index"].tolist() == [0]
    assert found["outputs"]["x"].tolist() == [[1.5]]
    assert found["outputs"]["n"].tolist() == [3.0]


def test_a_value_that_is_missing_has_a_mark_in_serving_rows(ask):
    found = ask("serving_rows", x=(tf.float32, [None]), n=(tf.int64, [None]), other=(tf.string, [None]))
    assert found["index"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found["outputs"]["x"], np.array([1.5, np.nan, 2.5], np.float32))
    assert found["outputs"]["n"].tolist() == [3, 4, -(2**63)]
    assert found["outputs"]["other"].tolist() == [b"", b"", b""]


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"x": (tf.float32, [None]), "y": (tf.float32, [None])}, "its input 'y' is not a column"),
        ({"x": (tf.float32, [None, 2])}, "no row has a value for each of its 1 inputs"),
    ],
)
def test_inputs_that_raw_rows_do_not_fit_are_named(ask, inputs, reason):
    assert reason in ask(**inputs)["not_asked"]


def test_a_number_for_a_column_of_text_is_an_error(ask):
    with pytest.raises(TypeError, match="'word' is float32, and the column holds text"):
        ask(x=(tf.float32, [None]), word=(tf.float32, [None]))
