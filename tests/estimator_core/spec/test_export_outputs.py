import pytest
import tensorflow as tf
from tensorflow.python.saved_model.model_utils import export_output as of_tensorflow

import estimator_core as est

EvalOutput = est.export.EvalOutput


@pytest.fixture
def one():
    with tf.Graph().as_default():
        yield tf.constant(1.0)


def test_what_an_eval_output_holds(one):
    """Names as 2.15 gives them."""
    output = EvalOutput(one, {"p": one, ("head", "q"): one}, {"m": (one, one)})
    assert output.loss == {EvalOutput.LOSS_NAME: one}
    assert set(output.predictions) == {"predictions/p", "predictions/head/q"}
    assert set(output.metrics) == {"metrics/m/value", "metrics/m/update_op"}
    assert set(output.outputs) == {*output.loss, *output.predictions, *output.metrics}
    features = {"w": one, "words": tf.sparse.from_dense([[1]])}
    more = EvalOutput(one, labels={"l": one}, features=features).outputs
    assert set(more) == {EvalOutput.LOSS_NAME, "labels/l", "features/w"}


def test_an_eval_output_of_single_tensors_and_of_nothing(one):
    output = EvalOutput({"part": one}, one, {("x", "y"): (one, one)})
    assert set(output.loss) == {"loss/part"}
    assert set(output.predictions) == {EvalOutput.PREDICTIONS_NAME}
    assert set(output.metrics) == {"metrics/x/y/value", "metrics/x/y/update_op"}
    assert (EvalOutput().loss, EvalOutput().predictions, EvalOutput().metrics) == (None, None, None)


def test_all_are_export_outputs(one):
    export = est.export
    outputs = EvalOutput(one), export.PredictOutput(one), export.RegressionOutput(one)
    for output in (*outputs, export.ClassificationOutput(scores=one)):
        assert isinstance(output, export.ExportOutput)
    with pytest.raises(TypeError):
        export.ExportOutput()


@pytest.mark.parametrize("make", ["PredictOutput", "RegressionOutput", "ClassificationOutput"])
def test_a_sparse_output_is_refused(one, make):
    sparse = tf.sparse.from_dense([[1.0]])
    with pytest.raises(ValueError, match="Tensor"):
        getattr(est.export, make)(sparse)


def _in_spec(output):
    predictions = {"p": tf.constant([1.0])}
    spec = est.EstimatorSpec("infer", predictions, export_outputs={"serving_default": output})
    return spec.export_outputs["serving_default"]


def test_the_outputs_of_tensorflow_itself_are_taken(one):
    """tf.estimator.export offered these classes, and programs import them from TensorFlow, too."""
    word = tf.constant(["a"])
    regression = _in_spec(of_tensorflow.RegressionOutput(one))
    assert isinstance(regression, est.export.RegressionOutput)
    assert regression.value is one
    classification = _in_spec(of_tensorflow.ClassificationOutput(one, word))
    assert isinstance(classification, est.export.ClassificationOutput)
    assert (classification.scores, classification.classes) == (one, word)
    prediction = _in_spec(of_tensorflow.PredictOutput({"a": one}))
    assert isinstance(prediction, est.export.PredictOutput)
    assert prediction.outputs == {"a": one}
    evaluation = of_tensorflow.EvalOutput(loss=one)
    assert _in_spec(evaluation) is evaluation
    assert isinstance(evaluation, est.export.ExportOutput)


def test_a_subclass_of_an_output_of_tensorflow_stays_as_it_is(one):
    class Own(of_tensorflow.PredictOutput):
        def as_signature_def(self, receiver_tensors):
            return super().as_signature_def({"only": receiver_tensors["x"]})

    output = Own(one)
    assert _in_spec(output) is output
    assert isinstance(output, est.export.ExportOutput)
    assert not isinstance(output, est.export.PredictOutput)
