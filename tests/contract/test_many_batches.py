"""Many batches in a session call evaluate to the same as one batch a call, bit for bit."""

import logging

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.graphs import batch_runner
from tests.circles import in_circles
from tests.contract.executions import lines_of
from tests.contract.programs_in_evaluation import PROGRAMS, evaluated, forty_batches, mean_only
from tests.estimator_core.programs import Calls

FIRST = {"empty_batches", "kept_by_hand", "py_func", "seeded", "table"}
SLOW = {"binary_with_weights", "branches", "three_classes", "wide_and_deep"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Returns a function from the name of a program to the directory of its trained model."""
    made = {}

    def train(name):
        if name not in made:
            model_dir = str(tmp_path_factory.mktemp(name))
            make, input_fn, _ = PROGRAMS[name]
            config = est.RunConfig(model_dir, tf_random_seed=1, steps_per_session_run=1)
            make(config).train(input_fn, steps=3)
            made[name] = model_dir
        return made[name]

    return train


def evaluate(name, model_dir, caplog, batches_a_call, **options):
    """The metrics as bytes, and the lines of the log that say why batches are evaluated one by one."""
    make, input_fn, _ = PROGRAMS[name]
    config = est.RunConfig(model_dir, tf_random_seed=1, steps_per_session_run=batches_a_call)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        metrics = make(config).evaluate(input_fn, **options)
    reasons = lines_of(caplog, "Batches are evaluated one by one")
    return {key: np.asarray(value).tobytes() for key, value in metrics.items()}, reasons


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", in_circles(sorted(PROGRAMS), first=FIRST, slow=SLOW))
@pytest.mark.parametrize("has_loop_at_once", [False, True])
def test_the_metrics_are_those_of_one_batch_a_call(name, has_loop_at_once, trained, caplog, monkeypatch):
    if has_loop_at_once:
        monkeypatch.setattr(batch_runner, "_SECS_WITHOUT_LOOP", 0.0)
    reason = PROGRAMS[name][2]
    expected, reasons = evaluate(name, trained(name), caplog, 1)
    assert reasons == []
    numbers = [("auto", {})] if has_loop_at_once else [(7, {}), (10, {"steps": 13}), ("auto", {})]
    for batches_a_call, options in numbers:
        if options:
            expected_here, _ = evaluate(name, trained(name), caplog, 1, **options)
            assert expected_here != expected  # so few batches are something else
        else:
            expected_here = expected
        found, reasons = evaluate(name, trained(name), caplog, batches_a_call, **options)
        assert found == expected_here
        if batches_a_call != "auto" or has_loop_at_once:
            assert len(reasons) == (reason is not None), caplog.messages
            assert reason is None or reason in reasons[0]


class AtTheEnd(est.SessionRunHook):
    def begin(self):
        (self._total,) = [v for v in tf1.local_variables() if v.op.name == "mean/total"]

    def end(self, session):
        self.total = session.run(self._total)


def estimator(tmp_path, batches_a_call, **options):
    config = est.RunConfig(str(tmp_path), tf_random_seed=1, steps_per_session_run=batches_a_call)
    return evaluated(mean_only, **options)(config)


def test_a_hook_that_is_called_around_batches_sees_each_of_them(tmp_path, caplog):
    hook, of_model = Calls(), Calls()
    model = estimator(tmp_path, 7, with_hooks=lambda: [of_model]).train(forty_batches, steps=1)
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        model.evaluate(forty_batches, hooks=[hook])
    assert (hook.calls, of_model.calls) == (40, 40)
    (line,) = lines_of(caplog, "One batch per session call")
    assert "Calls" in line


def test_a_hook_that_is_called_at_the_end_finds_the_sums(tmp_path, caplog):
    model = estimator(tmp_path, 7).train(forty_batches, steps=1)
    hook = AtTheEnd()
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        mean = model.evaluate(forty_batches, hooks=[hook])["mean"]
    assert not any("one batch per session call" in line for line in caplog.messages)
    assert hook.total / 320 == pytest.approx(mean)  # 40 batches of 4 rows of 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batches_a_call", [1, 7, "auto"])
@pytest.mark.parametrize("steps", [23, 40, 45])
def test_the_log_counts_the_batches(batches_a_call, steps, tmp_path, caplog):
    model = estimator(tmp_path, batches_a_call).train(forty_batches, steps=1)
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        model.evaluate(forty_batches, steps=steps)
    every = steps // 10
    counts = sorted({*range(every, min(steps, 40) + 1, every), *([steps] if steps <= 40 else [])})
    assert lines_of(caplog, "Evaluation [") == [f"Evaluation [{count}/{steps}]" for count in counts]


def batches_until_an_error():
    def check(index, features, label):
        with tf.control_dependencies([tf.debugging.assert_less(index, tf.constant(17, tf.int64))]):
            return tf.nest.map_structure(tf.identity, (features, label))

    return forty_batches().enumerate().map(lambda index, element: check(index, *element))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batches_a_call", [1, 5, "auto"])
def test_an_error_says_after_how_many_batches_it_came(batches_a_call, tmp_path, caplog):
    model = estimator(tmp_path, batches_a_call).train(forty_batches, steps=1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        model.evaluate(batches_until_an_error)
    assert "Evaluation failed after 17 batches." in caplog.text


def test_a_thread_that_fills_a_queue_and_fails_is_reported(tmp_path):
    def input_fn():
        x = tf1.train.input_producer([1.0, 2.0, 0.0], num_epochs=None, shuffle=False).dequeue()
        checked = tf1.debugging.check_numerics(1.0 / x, "no number")
        x, label = tf1.train.batch([tf.fill([3], checked), tf.constant(1, tf.int64)], 1)
        return {"x": x}, label

    model = estimator(tmp_path, 5).train(forty_batches, steps=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        model.evaluate(input_fn)


def test_metrics_that_become_nan_stay_what_they_are(tmp_path):
    def input_fn():
        x = np.ones([12, 3], np.float32)
        x[5] = np.nan
        return tf.data.Dataset.from_tensor_slices(({"x": x}, np.zeros(12, np.int64))).batch(2)

    for batches_a_call in (1, 4):
        model = estimator(tmp_path, batches_a_call).train(forty_batches, max_steps=1)
        metrics = model.evaluate(input_fn)
        assert np.isnan([metrics["loss"], metrics["mean"]]).all()


def test_an_empty_input_evaluates_to_where_metrics_begin(tmp_path, caplog):
    model = estimator(tmp_path, 7).train(forty_batches, steps=1)
    metrics = model.evaluate(lambda: forty_batches().take(0))
    assert metrics == {"loss": 0.0, "mean": 0.0, "global_step": 1}
    assert "Evaluation made no steps" in caplog.text
