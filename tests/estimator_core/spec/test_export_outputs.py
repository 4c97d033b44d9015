import pytest
import tensorflow as tf

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


def test_an_eval_output_of_single_tensors_and_of_nothing(one):
    output = EvalOutput({"part": one}, one, {("x", "y"): (one, one)})
    assert set(output.loss) == {"loss/part"}
    assert set(output.predictions) == {EvalOutput.PREDICTIONS_NAME}
    assert set(output.metrics) == {"metrics/x/y/value", "metrics/x/y/update_op"}
    assert (EvalOutput().loss, EvalOutput().predictions, EvalOutput().metrics) == (None, None, None)


def test_all_are_export_outputs(one):
    for output in (
        EvalOutput(one),
        est.export.PredictOutput(one),
        est.export.RegressionOutput(one),
        est.export.ClassificationOutput(scores=one),
    ):
        assert isinstance(output, est.export.ExportOutput)
    with pytest.raises(TypeError):
        est.export.ExportOutput()


@pytest.mark.parametrize("make", ["PredictOutput", "RegressionOutput", "ClassificationOutput"])
def test_a_sparse_output_is_refused(one, make):
    sparse = tf.sparse.from_dense([[1.0]])
    with pytest.raises(ValueError, match="Tensor"):
        getattr(est.export, make)(sparse)
