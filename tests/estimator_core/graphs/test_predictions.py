"""The loop of prediction, through an Estimator."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import batch_of


def test_predictions_are_examples_or_batches(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    assert [example["y"] for example in estimator.predict(eval_input_fn)] == [1, 2, 3]
    batches = estimator.predict(eval_input_fn, yield_single_examples=False)
    assert [batch["y"].tolist() for batch in batches] == [[1, 2], [3]]


def test_predict_refuses_single_examples_of_different_batch_sizes(tmp_path, eval_input_fn):
    def model_fn(features, mode):
        return est.EstimatorSpec(mode, {"a": features["x"], "b": tf.zeros([5])})

    with pytest.raises(ValueError, match="'a': 2, 'b': 5"):
        next(est.Estimator(model_fn, tmp_path).predict(eval_input_fn))


def predicted(predictions, **arguments):
    """Returns the predictions for two batches of x, of 2 and of 1 example."""

    def model_fn(features, labels, mode):
        return est.EstimatorSpec(mode, predictions=predictions(features["x"]))

    batches = lambda: tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0]}).batch(2)  # noqa: E731
    return list(est.Estimator(model_fn).predict(batches, **arguments))


def test_predictions_come_one_by_one():
    found = predicted(lambda x: {"x": x, "pair": tf.stack([x, -x], axis=1)})
    assert [set(one) for one in found] == [{"x", "pair"}] * 3
    assert [float(one["x"]) for one in found] == [1.0, 2.0, 3.0]
    assert [one["pair"].tolist() for one in found] == [[1, -1], [2, -2], [3, -3]]
    assert predicted(lambda x: 2.0 * x) == [2.0, 4.0, 6.0]  # a single tensor


class _Calls(tf1.train.SessionRunHook):
    """Feeds one number a step, from an iterator whose end ends the loop."""

    def __init__(self, numbers=()):
        self.calls = []
        self._numbers = iter(numbers)

    def before_run(self, run_context):
        self.calls.append("before_run")
        return tf1.train.SessionRunArgs(None, feed_dict={"fed:0": [next(self._numbers)]})

    def end(self, session):
        self.calls.append("end")


def _fed_input_fn():
    return {"x": tf1.placeholder(tf.float32, [1], name="fed")}


def test_predictions_end_when_a_hook_has_nothing_more_to_feed(make_estimator, input_fn):
    estimator = make_estimator()
    estimator.train(input_fn, steps=1)  # the weight is 1
    hook = _Calls([1.0, 2.0])
    assert [example["y"] for example in estimator.predict(_fed_input_fn, hooks=[hook])] == [1.0, 2.0]
    assert hook.calls == ["before_run"] * 3 + ["end"]


def test_hooks_of_a_prediction_end_with_the_input_alone(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    hook = _Calls([1.0, 2.0])
    predictions = estimator.predict(_fed_input_fn, hooks=[hook])
    next(predictions)
    predictions.close()
    assert hook.calls == ["before_run"]
    for dataset, ends in ((batch_of({"x": [1.0]}), 1), (_failing, 0)):
        ended = []
        hook = type("Ends", (tf1.train.SessionRunHook,), {"end": lambda *_, ended=ended: ended.append(1)})()
        try:
            list(estimator.predict(dataset, hooks=[hook]))
        except tf.errors.InvalidArgumentError:
            assert dataset is _failing
        assert len(ended) == ends


def _failing():
    dataset = tf.data.Dataset.from_tensors({"x": [1.0]})
    return dataset.map(lambda features: {"x": tf.debugging.check_numerics(features["x"] / 0, "bad")})
