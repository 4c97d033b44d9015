import pytest
import tensorflow as tf

from estimator_core.tpu.examples_per_second_hook import ExamplesPerSecondHook
from tests.oracle import observe

tf1 = tf.compat.v1


@pytest.mark.parametrize(("batch_size", "examples"), [(8, 4.0), (None, None)])
def test_rates_are_those_since_the_last_time(tmp_path, monkeypatch, caplog, batch_size, examples):
    """A step takes two seconds: half a step per second, and eight times as many examples."""
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    with tf.Graph().as_default(), caplog.at_level("INFO", logger="tensorflow"):
        train_op = tf1.train.create_global_step().assign_add(1)
        hook = ExamplesPerSecondHook(batch_size, 3, str(tmp_path))
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(8):
                now[0] += 2.0
                session.run(train_op)
    tf1.summary.FileWriterCache.clear()
    found = {}
    for event in observe.events_of(str(tmp_path)):
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value.simple_value
    # The first step starts the clock.
    expected = {"global_step/sec": {4: 0.5, 7: 0.5}}
    if examples:
        expected["examples/sec"] = {4: examples, 7: examples}
    assert found == expected
    lines = [record.getMessage() for record in caplog.records if "/sec" in record.getMessage()]
    assert (
        lines
        == (["global_step/sec: 0.5", "examples/sec: 4"] if examples else ["global_step/sec: 0.5"])
        * 2
    )
