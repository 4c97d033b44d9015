import numpy as np
import pytest
import tensorflow as tf

from components.evaluator.metrics.eval_model import EvalModel
from components.tfx.model_paths import eval_model_path
from tests.components.conftest import example
from tests.components.evaluator.conftest import FLOAT, STRING


@pytest.fixture
def model(make_model):
    return make_model(
        {"x": FLOAT},
        predict=lambda f: {"predictions": f["x"][:, tf.newaxis], "doubled": 2 * f["x"]},
        label=lambda f: f["x"] > 1.0,
    )


def serialized(*values):
    return np.array([example({"x": value}) for value in values], object)


def test_labels_and_predictions_of_raw_examples(model):
    path = str(eval_model_path(model.uri))
    result = EvalModel(path)(serialized(0.5, 1.5, 3.0))
    assert result.labels.tolist() == [0, 1, 1]
    assert result.labels.dtype == np.int64
    assert result.predictions.tolist() == [0.5, 1.5, 3.0]  # [3, 1] is squeezed
    doubled = EvalModel(path, prediction_key="doubled")(serialized(0.5, 1.5))
    assert doubled.predictions.tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match=r"one of: doubled, predictions\. .*'double'"):
        EvalModel(path, prediction_key="double")


def test_examples_are_not_formatted_for_a_message_of_tensorflow(model, monkeypatch):
    evaluate = EvalModel(str(eval_model_path(model.uri)))
    formatted = []
    monkeypatch.setattr(type(tf.constant(1)), "__repr__", lambda _: formatted.append(1) or "tensor")
    assert evaluate(serialized(0.5, 1.5)).predictions.tolist() == [0.5, 1.5]
    assert evaluate.labels(serialized(0.5, 1.5)).tolist() == [0, 1]
    assert not formatted


def test_classes_become_ids_in_the_order_of_the_vocabulary(make_model):
    model = make_model(
        {"word": STRING},
        predict=lambda f: {
            "probabilities": tf.tile([[0.25, 0.75]], [tf.size(f["word"]), 1]),
            "all_classes": tf.tile([["b", "a"]], [tf.size(f["word"]), 1]),
        },
        label=lambda f: f["word"],
    )
    evaluate = EvalModel(str(eval_model_path(model.uri)))
    result = evaluate(np.array([example({"word": word}) for word in ("a", "b", "a")], object))
    assert result.labels.tolist() == [1, 0, 1]
    assert result.predictions.tolist() == [[0.25, 0.75]] * 3
    with pytest.raises(ValueError, match=r"The label b'c' is not one of the model's classes"):
        evaluate(np.array([example({"word": "c"})], object))
