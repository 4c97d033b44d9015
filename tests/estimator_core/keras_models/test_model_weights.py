import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.keras_models.model_weights import ModelWeights, check_is_not_of_layers

_VALUES = [np.float32([[1.0], [2.0]]), np.float32([3.0])]
_KEYS = {
    "checkpoint": [
        "variables/0_kernel/.ATTRIBUTES/VARIABLE_VALUE",
        "variables/1_bias/.ATTRIBUTES/VARIABLE_VALUE",
    ],
    "saver": ["dense/kernel", "dense/bias"],
}


def _model(size=2):
    """Returns a model in the current graph with its variables, which start from other values."""
    tf1.train.get_or_create_global_step()
    with tf.name_scope("dense"):
        layer = tf.Module()
        layer.kernel = tf.Variable(tf.zeros([size, 1]), name="kernel")
        layer.bias = tf.Variable([0.0], name="bias")
    model = tf.Module()
    model.layers = [layer]  # variables of a Keras model are those of its layers
    return model, [layer.kernel, layer.bias]


@pytest.mark.parametrize("checkpoint_format", _KEYS)
def test_values_go_into_a_checkpoint_and_come_back(tmp_path, checkpoint_format):
    weights = ModelWeights(_VALUES, checkpoint_format)
    with tf.Graph().as_default():
        model, variables = _model()
        assert weights.keys(variables) == _KEYS[checkpoint_format]
        path = weights.save(model, variables, str(tmp_path / "new" / "model.ckpt"))
    saved = tf.train.load_checkpoint(path)
    for key, value in zip(_KEYS[checkpoint_format], _VALUES, strict=True):
        np.testing.assert_array_equal(saved.get_tensor(key), value)
    with tf.Graph().as_default():
        read = weights.read(_model()[1], path)
    for value, expected in zip(read, _VALUES, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_a_checkpoint_of_another_shape_or_format_is_refused(tmp_path):
    with tf.Graph().as_default():
        model, variables = _model()
        path = ModelWeights(_VALUES, "saver").save(model, variables, str(tmp_path / "model.ckpt"))
    with tf.Graph().as_default():
        _, variables = _model(size=3)
        with pytest.raises(ValueError, match=r"lacks \['dense/kernel'\].*other shapes.*\[2, 1\]"):
            ModelWeights(_VALUES, "saver").read(variables, path)
        with pytest.raises(ValueError, match=r"lacks \['variables/0_kernel"):
            ModelWeights(_VALUES, "checkpoint").read(variables, path)


def test_without_values_variables_start_from_their_initializers(graph):
    model, variables = _model()
    scaffold = ModelWeights([], "saver").scaffold(model, variables)
    scaffold.finalize()
    with tf1.Session() as session:
        session.run(scaffold.init_op)
        assert scaffold.init_fn is None
        assert session.run(variables[1]).tolist() == [0.0]


def test_a_checkpoint_by_layers_is_told_from_ours(tmp_path):
    layers = tf.train.Checkpoint(**{"layer_with_weights-0": tf.Variable(1.0)})
    with pytest.raises(ValueError, match="another model_dir"):
        check_is_not_of_layers(layers.write(str(tmp_path / "theirs")))
    ours = tf.train.Checkpoint(**{"layer_with_weights-0": tf.Variable(1.0), "variables": [tf.Variable(1.0)]})
    check_is_not_of_layers(ours.write(str(tmp_path / "ours")))


def test_keras_variables_are_named_by_position_whatever_keras_counts(graph):
    weights = ModelWeights([], "checkpoint")
    layers = [keras.layers.Dense(1) for _ in range(2)]
    for layer in layers:
        layer.build((None, 2))
    variables = [variable.value for layer in layers for variable in layer.variables]
    keys = [key.partition("/.")[0] for key in weights.keys(variables)]
    assert keys == ["variables/0_kernel", "variables/1_bias", "variables/2_kernel", "variables/3_bias"]
