import numpy as np
import pytest
import tensorflow as tf

from estimator_core import summaries
from tests.oracle import observe


@pytest.mark.parametrize("value", [object(), np.array([object()]), [[1.0], [2.0, 3.0]]])
def test_what_is_neither_scalar_nor_array_is_left_out(tmp_path, caplog, value):
    results = {"auc": np.float32(0.5), "odd": value, "curve": np.array([1.0, 2.0])}
    summaries.write_evaluation(str(tmp_path), results, 7)
    assert "Skipping summary for odd" in caplog.text
    written = [
        (event.step, value.tag, value.WhichOneof("value"))
        for event in observe.events_of(str(tmp_path))
        for value in event.summary.value
    ]
    assert written == [(7, "auc", "simple_value"), (7, "curve", "tensor")]


def test_a_serialized_summary_is_numbered(tmp_path):
    picture = tf.compat.v1.Summary()
    picture.value.add(tag="whatever", simple_value=3.0)
    summaries.write_evaluation(str(tmp_path), {"picture": picture.SerializeToString()}, 7)
    (event,) = [event for event in observe.events_of(str(tmp_path)) if event.summary.value]
    assert [(value.tag, value.simple_value) for value in event.summary.value] == [("picture/0", 3.0)]
