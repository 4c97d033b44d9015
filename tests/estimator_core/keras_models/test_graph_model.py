import keras
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.keras_models.graph_model import Conversion
from tests.estimator_core.keras_models.models import TWO_FEATURES, TWO_LABELS, batches, two_by_two


def _signatures(estimator, tmp_path, shapes):
    """Returns the kind and the outputs of each exported signature, fed with serialized tf.Examples."""
    spec = {name: tf.io.FixedLenFeature(shape[1:], tf.float32) for name, shape in shapes.items()}
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    with tf.Graph().as_default(), tf1.Session() as session:
        signatures = tf1.saved_model.load(session, ["serve"], path).signature_def
    return {
        name: (signature.method_name.rpartition("/")[2], sorted(signature.outputs))
        for name, signature in signatures.items()
        if name != "__saved_model_init_op"
    }


def _plain():
    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(inputs))
    model.compile("sgd", "mse")
    return model


_PREDICT, _REGRESS = est.export.PredictOutput, est.export.RegressionOutput


# The signatures are those of tf.estimator 2.15, which does not take a "serving_default".
KIND_AND_VALUE = {"serving_default": ("predict", ["kind", "value"])}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("make", "export_outputs", "signatures"),
    [
        (two_by_two, {"kind": _PREDICT}, {**KIND_AND_VALUE, "kind": ("predict", ["output"])}),
        (two_by_two, {}, KIND_AND_VALUE),
        (
            _plain,
            {"out": _REGRESS},
            {"serving_default": ("predict", ["out"]), "out": ("regress", ["outputs"])},
        ),
        (
            _plain,
            {"serving_default": lambda outputs: _REGRESS(outputs["out"])},
            {"serving_default": ("regress", ["outputs"])},
        ),
    ],
)
def test_signatures_of_some_outputs(tmp_path, make, export_outputs, signatures):
    estimator = est.model_to_estimator(make(), model_dir=tmp_path / "model", export_outputs=export_outputs)
    shapes = {tensor.name: tensor.shape for tensor in make().inputs}
    assert _signatures(estimator, tmp_path, shapes) == signatures


def test_signatures_of_what_is_no_output_are_refused(tmp_path):
    estimator = est.model_to_estimator(
        _plain(), model_dir=tmp_path, export_outputs={"out": _PREDICT, "z": _PREDICT}
    )
    with pytest.raises(ValueError, match=r"\['out'\]. Received: \['out', 'z'\]"):
        _signatures(estimator, tmp_path, {"x": [None, 4]})


@pytest.mark.more
def test_metrics_and_signatures_by_other_names(tmp_path):
    def input_fn():
        return batches(TWO_FEATURES["by name"], TWO_LABELS["by name"])

    found = est.model_to_estimator(two_by_two(), model_dir=tmp_path / "plain").evaluate(input_fn)
    # Releases of Keras differ in the name of this metric.
    (mse,) = {"value_mse", "value_mean_squared_error"} & found.keys()
    names = {"value_mae": "error", "kind_accuracy": "hits", mse: "mse"}
    outputs = {"value": est.export.RegressionOutput, "kind": est.export.PredictOutput}
    given = {"metric_names_map": names, "export_outputs": outputs}
    estimator = est.model_to_estimator(two_by_two(), model_dir=tmp_path / "model", **given)
    signatures = {"value": ("regress", ["outputs"]), "kind": ("predict", ["output"])}
    shapes = {"wide": [None, 2], "deep": [None, 2]}
    assert _signatures(estimator, tmp_path, shapes) == KIND_AND_VALUE | signatures
    assert set(estimator.evaluate(input_fn)) == {"error", "hits", "mse", "loss", "global_step"}
    for wrong, message in (
        ({"value_mae": "error"}, r"lacks.*kind_accuracy"),
        ({**names, "value_nonsense": "other"}, r"not metrics of the Keras model: \['value_nonsense'\]"),
        ({**names, "loss": "other"}, r"not metrics of the Keras model: \['loss'\]"),
    ):
        with pytest.raises(ValueError, match=message):
            est.model_to_estimator(two_by_two(), metric_names_map=wrong).evaluate(input_fn)


def test_metrics_keep_their_names_without_a_map():
    assert Conversion().renamed_metrics({"mae": 1}) == {"mae": 1}
    assert Conversion(metric_names_map={"mae": "error"}).renamed_metrics({"mae": 1}) == {"error": 1}
