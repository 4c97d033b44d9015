import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core import tpu
from estimator_core.execution.single_device import SingleDevice
from estimator_core.hooks.intervals import find_interval
from estimator_core.tpu.hooks import ExamplesPerSecondHook, log_every_n_loops, log_every_n_steps
from tests.contract.executions import count_advances, several_steps_in_a_run
from tests.estimator_core.programs import counting, scalars_of


@pytest.mark.parametrize(
    ("batch_size", "examples", "has_directory"), [(8, 4.0, True), (None, None, True), (8, 4.0, False)]
)
def test_rates_are_those_since_the_last_time(
    tmp_path, monkeypatch, caplog, batch_size, examples, has_directory
):
    """A step takes two seconds: half a step per second, and eight times as many examples.

    Without a directory, as in a worker, rates are only logged: the chief alone writes summaries.
    """
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    with tf.Graph().as_default(), caplog.at_level("INFO", logger="tensorflow"):
        train_op = tf1.train.create_global_step().assign_add(1)
        hook = ExamplesPerSecondHook(batch_size, 3, str(tmp_path) if has_directory else None)
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(8):
                now[0] += 2.0
                session.run(train_op)
    tf1.summary.FileWriterCache.clear()
    # The first step starts the clock.
    expected = {"global_step/sec": {4: 0.5, 7: 0.5}}
    if examples:
        expected["examples/sec"] = {4: examples, 7: examples}
    assert scalars_of(tmp_path) == (expected if has_directory else {})
    lines = [line for line in caplog.messages if "/sec" in line]
    assert lines == (["global_step/sec: 0.5"] + ["examples/sec: 4"] * bool(examples)) * 2


def test_it_is_due_at_the_first_step_and_then_at_intervals(tmp_path):
    hook = ExamplesPerSecondHook(8, 6, str(tmp_path))
    interval = find_interval(hook)
    assert interval.steps_until_due(0) == 1
    hook._timer.update_last_triggered_step(1)
    assert [interval.steps_until_due(step) for step in (1, 3, 6, 9)] == [6, 4, 1, 1]


def test_it_lets_a_tpu_estimator_make_many_steps_a_call(tmp_path, monkeypatch):
    execution = several_steps_in_a_run(SingleDevice, 5)()
    advanced = count_advances(execution, monkeypatch)
    monkeypatch.setattr("estimator_core.estimator.select_execution", lambda config, mode: execution)

    def model_fn(features, labels, mode, params):
        return counting(mode, tf.constant(1.0))

    config = tpu.RunConfig(model_dir=str(tmp_path), log_step_count_steps=12)  # by 2 iterations_per_loop

    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=2)
    estimator.train(lambda params: tf.data.Dataset.from_tensors(({}, [0.0])).repeat(), steps=15)
    assert list(scalars_of(tmp_path)["examples/sec"]) == [7, 13]
    # Calls end at steps 1, 6, 7, 12, 13 and 15; all but the last step of each is made without hooks.
    assert advanced == [4, 4, 1]


# The steps at which a loss is logged on shards; for the values: `test_iterations_per_loop`.
@pytest.mark.parametrize(("iterations", "loops"), [(2, 15), (7, 5), ("7", 5), (100, 1), ("5m", 1)])
def test_a_line_comes_every_so_many_loops(iterations, loops):
    """Every ceil(30 / iterations) loops; every loop if loops take a given time."""
    config = tpu.RunConfig(tpu.TPUConfig(iterations), log_step_count_steps=30)
    assert log_every_n_loops(config, log_every_n_steps(config)) == loops
