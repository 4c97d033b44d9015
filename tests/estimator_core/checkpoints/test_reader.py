import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import batch_of, descent

_X = tf.feature_column.numeric_column("x")
_SPEC = tf.feature_column.make_parse_example_spec([_X])
_RECEIVER_FN = est.export.build_parsing_serving_input_receiver_fn(_SPEC)


def _estimator(model_dir, hidden_units):
    return est.DNNClassifier(hidden_units=hidden_units, feature_columns=[_X], model_dir=model_dir)


_input_fn = batch_of({"x": [1.0, 2.0]}, [0, 1], repeat=3)


@pytest.fixture
def model_dir(tmp_path):
    _estimator(tmp_path, [4]).train(_input_fn, steps=1)
    return tmp_path


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "use",
    [
        lambda estimator: estimator.train(_input_fn, steps=1),
        lambda estimator: estimator.evaluate(_input_fn),
        lambda estimator: next(estimator.predict(_input_fn)),
        lambda estimator: estimator.export_saved_model(estimator.model_dir, _RECEIVER_FN),
    ],
    ids=["train", "evaluate", "predict", "export"],
)
def test_a_checkpoint_of_another_architecture_is_refused(model_dir, use):
    message = r"hiddenlayer_0/kernel: \[1, 4\] in the checkpoint, \[1, 7\] in the model"
    with pytest.raises(ValueError, match=message):
        use(_estimator(model_dir, [7]))
    use(_estimator(model_dir, [4]))


def test_a_partitioned_variable_is_restored_as_ever(tmp_path):
    tf1 = tf.compat.v1

    def model_fn(features, labels, mode):
        partitioner = tf1.fixed_size_partitioner(2)
        table = tf1.get_variable("table", [4, 1], initializer=tf1.ones_initializer(), partitioner=partitioner)
        loss = tf.reduce_mean(tf.nn.embedding_lookup(list(table), tf.cast(features["x"], tf.int64)))
        return est.EstimatorSpec(mode, loss=loss, train_op=descent(loss, 0.1))

    estimator = est.Estimator(model_fn, tmp_path).train(_input_fn, steps=1)
    estimator.train(_input_fn, steps=1)
    # Each of the two examples moves its row by half the learning rate in a step.
    np.testing.assert_allclose(np.sort(estimator.get_variable_value("table").ravel()), [0.9, 0.9, 1, 1])


def test_a_checkpoint_that_is_not_there_is_named(model_dir):
    estimator = _estimator(model_dir, [4])
    with pytest.raises(ValueError, match=r"not a valid checkpoint.*model.ckpt-7"):
        estimator.evaluate(_input_fn, checkpoint_path=str(model_dir / "model.ckpt-7"))
