"""The expected values are those of tf.estimator 2.15."""

import functools
import os

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core
from estimator_core.installation import old_heads, old_helpers, old_training
from tests.estimator_core.programs import Calls, batch_of

X = np.array([[1.0], [2.0], [4.0]], np.float32)


def model_fn(features, labels, mode):
    prediction = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer()) * features["x"]
    if mode == "infer":
        return estimator_core.EstimatorSpec(mode, predictions=prediction)
    loss = tf.reduce_mean(tf.square(prediction - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.01).minimize(loss, tf1.train.get_global_step())
    return estimator_core.EstimatorSpec(mode, loss=loss, train_op=train_op)


input_fn = batch_of({"x": X}, 3 * X, repeat=5)


def test_model_dir_and_config():
    both = old_helpers.maybe_overwrite_model_dir_and_session_config
    assert both(estimator_core.RunConfig(model_dir="a"), None).model_dir == "a"
    assert os.path.isdir(both(None, None).model_dir)
    with pytest.raises(ValueError, match="model_dir"):
        both(estimator_core.RunConfig(model_dir="a"), "b")


def test_optimizers_of_tensorflow_1():
    adam = old_helpers.get_optimizer_instance("Adam", 0.5)
    assert type(adam) is tf1.train.AdamOptimizer
    assert adam._lr == 0.5
    given = tf1.train.FtrlOptimizer(0.1)
    assert old_helpers.get_optimizer_instance(given) is given
    assert old_helpers.get_optimizer_instance(lambda: given) is given
    with pytest.raises(ValueError, match="learning_rate must be specified"):
        old_helpers.get_optimizer_instance("Adam")
    for wrong in (3, lambda: 3):
        with pytest.raises(ValueError, match="not an Optimizer instance"):
            old_helpers.get_optimizer_instance(wrong)
    with pytest.raises(ValueError, match=r"Unsupported optimizer name.*'Adm'"):
        old_helpers.get_optimizer_instance("Adm", 0.1)


def test_optimizers_of_tensorflow_2(session):
    weight = tf1.get_variable("w", [], initializer=tf1.ones_initializer(), use_resource=True)
    sgd = old_helpers.get_optimizer_instance_v2("SGD", 0.25)
    update = sgd.apply_gradients([(tf.constant(2.0), weight)])
    session.run(tf1.global_variables_initializer())
    session.run(update)
    assert session.run(weight) == 0.5


def test_names_of_arguments():
    class Callable:
        def __call__(self, x, y):
            pass

    assert old_helpers.fn_args(lambda a, b: None) == ("a", "b")
    assert old_helpers.fn_args(functools.partial(lambda a, b: None, 1)) == ("b",)
    assert old_helpers.fn_args(Callable()) == ("x", "y")


def test_what_an_input_fn_returned(session):
    features, labels, hooks = old_helpers.parse_input_fn_result(input_fn())
    for hook in hooks:
        hook.begin()
        hook.after_create_session(session, None)
    x, y = session.run([features["x"], labels])
    np.testing.assert_array_equal(y, 3 * x)
    assert old_helpers.parse_input_fn_result({"x": tf.constant(X)})[1:] == (None, [])


def test_the_executor_and_the_exporter(tmp_path):
    hook = Calls()
    specs = {"x": tf.TensorSpec([None, 1], tf.float32)}
    receiver_fn = estimator_core.export.build_raw_serving_input_receiver_fn(specs)
    exporter = old_helpers._SavedModelExporter("mine", receiver_fn)
    executor = old_training._TrainingExecutor(
        estimator_core.Estimator(model_fn, str(tmp_path)),
        estimator_core.TrainSpec(input_fn, max_steps=4),
        estimator_core.EvalSpec(input_fn, exporters=exporter, start_delay_secs=0, throttle_secs=0),
        train_hooks=[hook],
    )
    metrics, exports = executor.run()
    assert (hook.calls, metrics["global_step"]) == (4, 4)
    assert b"/export/mine/" in exports[0]
    assert executor.run_evaluator()[0]["global_step"] == 4


@pytest.mark.parametrize(
    ("head", "size", "labels", "expected"),
    [
        # Weights 1 and 3: 4 log 2; 1 * 1 + 3 * 0; 4 log 3.
        (
            old_heads._binary_logistic_head_with_sigmoid_cross_entropy_loss("w"),
            1,
            [[1.0], [0.0]],
            4 * np.log(2),
        ),
        (old_heads._regression_head("w", 1), 1, [[1.0], [0.0]], 1.0),
        (old_heads._multi_class_head_with_softmax_cross_entropy_loss(3, "w"), 3, [[1], [0]], 4 * np.log(3)),
    ],
    ids=["binary", "regression", "several"],
)
def test_heads_sum_their_losses(session, head, size, labels, expected):
    features = {"w": tf.constant([[1.0], [3.0]])}
    spec = head.create_estimator_spec(features, "eval", tf.zeros([2, size]), labels=tf.constant(labels))
    session.run(tf1.local_variables_initializer())
    assert session.run(spec.loss) == pytest.approx(expected, rel=1e-6)


def test_symbols_stay_as_they_are():
    @old_helpers.estimator_export("estimator.Mine", v1=["estimator.Mine"])
    class Mine:
        pass

    assert Mine.__name__ == "Mine"
    assert old_helpers.TaskType.MASTER == "master"
