import logging
import re

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.hooks.training_progress import ProgressHook
from tests.estimator_core.programs import counting, examples, log_model_fn


def model_fn_of_tensorflow_1(features, labels, mode):
    spec = log_model_fn(features, labels, mode)
    return spec._replace(train_op=tf1.assign_add(tf1.train.get_global_step(), 1))


def test_loss_and_step_before_the_update_are_logged_at_intervals(tmp_path, caplog):
    config = est.RunConfig(model_dir=str(tmp_path), log_step_count_steps=3)
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        est.Estimator(log_model_fn, config=config).train(examples(1.0, 2.0, 3.0, 1.0, 2.0))
    first, second = [line for line in caplog.messages if line.startswith("loss = ")]
    assert first == "loss = 0.0, step = 0"  # log(1); no time has passed yet
    assert re.fullmatch(r"loss = 0.0, step = 3 \([0-9.]+ sec\)", second)


def test_the_step_after_the_update_is_logged_with_variables_of_tensorflow_1(tmp_path, caplog):
    config = est.RunConfig(model_dir=str(tmp_path), log_step_count_steps=3)
    tf1.disable_resource_variables()
    try:
        with caplog.at_level(logging.INFO, logger="tensorflow"):
            est.Estimator(model_fn_of_tensorflow_1, config=config).train(examples(*[1.0] * 5))
    finally:
        tf1.enable_resource_variables()
    steps = re.findall(r"loss = 0.0, step = (\d+)", caplog.text)
    assert steps == ["1", "4"]  # as tf.estimator 2.15 does


@pytest.mark.parametrize("every_n_iter", [None, 0])
def test_no_interval_logs_nothing(every_n_iter, caplog):
    with tf.Graph().as_default(), caplog.at_level(logging.INFO, logger="tensorflow"):
        train_op = tf1.train.create_global_step().assign_add(1)
        hook = ProgressHook(tf.constant(1.0), every_n_iter)
        assert hook.last_step is None
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(train_op)
            session.run(train_op)
    assert hook.last_step == 2
    assert "loss" not in caplog.text


def test_the_time_is_that_since_the_last_line(monkeypatch, caplog):
    now = [50.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with tf.Graph().as_default(), caplog.at_level(logging.INFO, logger="tensorflow"):
        train_op = tf1.train.create_global_step().assign_add(1)
        hook = ProgressHook(tf.constant(1.0), 2)
        for _ in range(2):  # a second session starts anew
            with tf1.train.MonitoredSession(hooks=[hook]) as session:
                for secs in (1.0, 2.0, 3.0, 4.0, 5.0):
                    now[0] += secs
                    session.run(train_op)
    assert [line for line in caplog.messages if line.startswith("loss")] == [
        "loss = 1.0, step = 0",
        "loss = 1.0, step = 2 (5.000 sec)",
        "loss = 1.0, step = 4 (9.000 sec)",
    ] * 2


@pytest.mark.parametrize(
    ("limit", "is_told"),
    [({"max_steps": 10}, True), ({"steps": None}, False), ({"steps": 2}, False)],
    ids=["it ends before max_steps", "no limit", "all is trained"],
)
def test_input_that_ends_before_max_steps_is_said(tmp_path, caplog, limit, is_told):
    est.Estimator(log_model_fn, str(tmp_path)).train(examples(1.0, 2.0, 3.0), **limit)
    words = "The input ended at global step 3, before steps=None, max_steps=10."
    assert words in caplog.text if is_told else "The input ended" not in caplog.text


def test_an_error_of_the_graph_says_at_which_step(tmp_path, caplog):
    def failing_model_fn(features, labels, mode):
        x = tf.debugging.check_numerics(1.0 / features["x"], "1 / x", name="inverse_of_x")
        return counting(mode, tf.reduce_sum(x))

    def check(values, step):
        with pytest.raises(tf.errors.InvalidArgumentError, match="inverse_of_x"):
            est.Estimator(failing_model_fn, str(tmp_path)).train(examples(*values))
        assert f"Training failed in the step after global step {step}." in caplog.text

    check([1.0, 2.0, 0.0], 2)
    # The checkpoint is the one from before the first step; a training that goes on counts on.
    est.Estimator(log_model_fn, str(tmp_path)).train(examples(1.0, 2.0, 3.0))
    check([1.0, 0.0], 4)


def test_an_error_of_evaluation_says_in_which_batch(tmp_path, caplog):
    columns = [tf.feature_column.numeric_column("x")]
    estimator = est.DNNClassifier([2], columns, n_classes=3, model_dir=str(tmp_path))

    def labelled(*labels):
        return lambda: tf.data.Dataset.from_tensor_slices(({"x": [1.0] * len(labels)}, list(labels))).batch(1)

    estimator.train(labelled(0, 1, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Assert"):
        estimator.evaluate(labelled(0, 1, 7))
    assert "Evaluation failed after 2 batches." in caplog.text
