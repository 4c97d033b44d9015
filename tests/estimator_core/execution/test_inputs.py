"""The values that input_fns return become batches in the graph."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.inputs import features_and_labels, inputs_from
from estimator_core.execution.single_device import SingleDevice


def values_of(inputs, tensors):
    """Runs the tensors, in one session that has started the input, until the input ends."""
    seen = []
    with tf1.train.MonitoredSession(hooks=inputs.hooks) as session:
        while not session.should_stop():
            seen.append(session.run(tensors))
    return seen


def test_each_batch_is_the_next_element(graph):
    dataset = tf.data.Dataset.from_tensor_slices(({"x": [1, 2, 3, 4]}, [5, 6, 7, 8]))
    inputs = inputs_from(dataset, "train")
    (one, label), (two, _) = inputs.next_batch(), inputs.next_batch()
    seen = values_of(inputs, [tf.reduce_max([one["x"], two["x"]]), label])
    assert [pair[0] for pair in seen] == [2, 4]
    assert inputs.is_endless is False


def test_several_batches_come_in_order_and_all_or_none_is_used(graph):
    inputs = inputs_from(tf.data.Dataset.range(8), "infer")
    batches = inputs.next_batches(3)
    used = tf1.get_variable("used", [], tf.int64, tf1.zeros_initializer())
    with tf.control_dependencies([batches[0][0]]):
        count = used.assign_add(1)
    seen = []
    with tf1.train.MonitoredSession(hooks=inputs.hooks) as session:
        while not session.should_stop():
            seen.append(session.run([[batch for batch, _ in batches], count])[0])
            uses = len(seen)
    assert seen == [[0, 1, 2], [3, 4, 5]]  # 6 and 7 do not go around
    assert uses == 2


@pytest.mark.parametrize("with_queue", [True, False])
def test_tensors_are_computed_anew_and_may_end(with_queue, graph):
    if with_queue:
        tensor = tf1.train.limit_epochs(tf.constant(1.0), 2)
        tf1.add_to_collection(tf1.GraphKeys.QUEUE_RUNNERS, object())
    else:
        tensor = tf.constant(1.0)
    inputs = inputs_from(({"x": tensor}, tensor), "eval")
    assert inputs.is_endless is not with_queue
    assert inputs.next_batch()[1] is tensor
    assert inputs.hooks == ()


def test_tensors_of_an_iterator_of_the_users_own_end(graph):
    tensor = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
    assert inputs_from(tensor, "eval").is_endless is False


def test_the_input_is_read_on_the_cpu(graph):
    with tf1.device("/gpu:0"):
        inputs = SingleDevice().make_inputs(lambda: tf.data.Dataset.range(3), "infer")
        assert "CPU" in inputs.next_batch()[0].device.upper()


@pytest.mark.parametrize(
    ("element", "mode", "expected"),
    [
        (("f", "l"), "train", ("f", "l")),
        (["f", "l"], "eval", ("f", "l")),
        (("f", "l"), "infer", ("f", None)),
        (("f", "l", "rest"), "infer", ("f", None)),
        ({"a": 1, "b": 2}, "train", ({"a": 1, "b": 2}, None)),
    ],
)
def test_features_and_labels(element, mode, expected):
    assert features_and_labels(element, mode) == expected


@pytest.mark.parametrize("element", [("f",), ("f", "l", "w"), ()])
def test_a_tuple_of_another_length_is_refused(element):
    with pytest.raises(ValueError, match=f"Received: {len(element)} elements"):
        features_and_labels(element, "train")
