import functools

import numpy as np
import pytest
import tensorflow as tf

from estimator_core.heads import checks
from estimator_core.heads.label_vocabulary import LabelVocabulary

tf1 = tf.compat.v1

LOGITS = tf.zeros([3, 2])


def placeholder(*shape, dtype=tf.float32, known_rank=True):
    return tf1.placeholder(dtype, list(shape) if known_rank else None)


def run(fetch, feeds):
    with tf1.Session() as session:
        return session.run(fetch, feeds)


def test_logits_of_integers_become_floats_and_floats_keep_their_precision():
    assert checks.checked_logits([[1, 2]], 2).dtype == tf.float32
    assert checks.checked_logits(np.zeros([1, 2]), 2).dtype == tf.float64


@pytest.mark.parametrize("shape", [(3, 2), (3, 4, 2), (None, 2), (3, None)])
def test_logits_that_fit(shape):
    with tf.Graph().as_default():
        assert checks.checked_logits(placeholder(*shape), 2).shape.as_list() == list(shape)
        assert checks.checked_logits(placeholder(known_rank=False), 2).shape.rank is None


@pytest.mark.parametrize("shape", [(), (2,), (None,), (3, 1), (2, 3)])
def test_logits_that_do_not_fit(shape):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="logits_dimension=2"):
        checks.checked_logits(placeholder(*shape), 2)


def test_no_logits():
    with pytest.raises(ValueError, match="logits must not be None"):
        checks.checked_logits(None, 1)


@pytest.mark.parametrize(
    ("shape", "logits_shape", "dimension", "wanted"),
    [
        ((3,), (3, 5), 1, (3, 1)),
        ((3, 1), (3, 5), 1, (3, 1)),
        ((3, 2), (3, 2), 2, (3, 2)),
        ((3, 4), (3, 4, 1), 1, (3, 4, 1)),  # time steps
        ((3, 4, 2), (3, 4, 2), 2, (3, 4, 2)),
        ((None,), (None, 1), 1, (None, 1)),
        ((3, None), (3, 1), 1, (3, 1)),  # what is not known is checked when the graph runs
        ((3, None), (3, 2), 2, (3, 2)),
        ((3,), None, 1, (3, 1)),
    ],
)
def test_shapes_of_labels(shape, logits_shape, dimension, wanted):
    with tf.Graph().as_default():
        logits = placeholder(*(logits_shape or ()), known_rank=logits_shape is not None)
        labels = checks.checked_labels(placeholder(*shape), logits, dimension)
        assert labels.shape.as_list() == list(wanted)


@pytest.mark.parametrize(
    ("shape", "logits_shape", "dimension", "message"),
    [
        ((3, 2), (3, 1), 1, "Expected labels dimension=1"),
        ((3,), (3, 2), 2, "Expected labels dimension=2"),
        ((3, 1), (3, 2), 2, "Expected labels dimension=2"),
        ((3, 4), (3, 1), 1, "Expected labels dimension=1"),
        ((4,), (3, 1), 1, "same batch shape"),
        ((4, 1), (3, 1), 1, "same batch shape"),
        ((3, 5, 2), (3, 4, 2), 2, "same batch shape"),
        ((3, 4, 2), (3, 2), 2, "same batch shape"),
    ],
)
def test_shapes_of_labels_that_do_not_fit(shape, logits_shape, dimension, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        checks.checked_labels(placeholder(*shape), placeholder(*logits_shape), dimension)


@pytest.mark.parametrize(
    ("shape", "dimension"), [((3, 2), 2), ((None, 2), 2), ((3, 4, 2), 2), ((3, 1), 1)]
)
def test_labels_that_fit_need_no_operation(shape, dimension):
    with tf.Graph().as_default() as graph:
        labels, logits = placeholder(*shape), placeholder(*shape)
        before = len(graph.get_operations())
        assert checks.checked_labels(labels, logits, dimension) is labels
        assert len(graph.get_operations()) == before


def test_labels_of_unknown_rank_take_the_shape_of_the_logits():
    with tf.Graph().as_default():
        labels, logits = placeholder(known_rank=False), placeholder(None, None, 3)
        checked = checks.checked_labels(labels, logits, 2)
        feeds = {labels: np.arange(8.0), logits: np.zeros([2, 2, 3])}
        assert run(checked, feeds).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_a_last_dimension_that_is_not_known_is_checked_when_the_graph_runs():
    with tf.Graph().as_default():
        labels = placeholder(None, None)
        checked = checks.checked_labels(labels, placeholder(None, 2), 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2,3\]"):
            run(checked, {labels: np.zeros([2, 3])})


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "labels is None"),
        ({"b": [1], "a": [2]}, r"takes no dict. Received: keys \['a', 'b'\]"),
        (tf.sparse.from_dense([[1]]), "must be dense"),
    ],
)
def test_labels_that_are_no_tensor(labels, message):
    with pytest.raises(ValueError, match=message):
        checks.checked_labels(labels, LOGITS, 1)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([[0], [2]], np.int64), [[0], [2]]),
        (np.array([[0.0], [1.5], [2.0]], np.float32), [[0.0], [1.5], [2.0]]),
        (np.array([[True], [False]]), [[1], [0]]),
    ],
)
def test_class_ids_keep_their_values(labels, expected):
    ids = checks.checked_class_ids(tf.constant(labels), 3, None)
    assert ids.numpy().tolist() == expected
    assert ids.dtype == (tf.int32 if labels.dtype == bool else labels.dtype)


def test_class_ids_of_words():
    words = LabelVocabulary(["a", "b", "c"], 3)
    assert checks.checked_class_ids(tf.constant(["c", "a"]), 3, words).numpy().tolist() == [2, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in label_vocabulary \[a, b, c\]"):
        checks.checked_class_ids(tf.constant(["c", "d"]), 3, words)


@pytest.mark.parametrize("outside", [-1, 3, 7])
def test_class_ids_out_of_range(outside):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"<= n_classes - 1 \(2\)"):
        checks.checked_class_ids(tf.constant([[1], [outside]]), 3, None)


def test_the_check_of_class_ids_runs_with_the_graph():
    with tf.Graph().as_default():
        labels = placeholder(None, 1, dtype=tf.int64)
        ids = checks.checked_class_ids(labels, 3, None)
        assert run(ids, {labels: [[2]]}).tolist() == [[2]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must be >= 0"):
            run(ids, {labels: [[3]]})


@pytest.mark.parametrize(
    ("labels", "vocabulary", "message"),
    [
        (["a"], None, "string labels need a label_vocabulary"),
        ([1], LabelVocabulary(["a", "b"], 2), "should be string"),
        ([1j], None, "should be integer"),
    ],
)
def test_dtypes_of_labels(labels, vocabulary, message):
    with pytest.raises(ValueError, match=message):
        checks.checked_class_ids(tf.constant(labels), 2, vocabulary)


def test_no_weights_are_one():
    assert checks.checked_weights(None, None, LOGITS) == 1.0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1.0, 2.0, 0.5], [[1.0], [2.0], [0.5]]),
        ([[1], [2], [3]], [[1.0], [2.0], [3.0]]),
        ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    ],
)
def test_weights_by_name_or_column(given, expected):
    features = {"w": given, "x": [0.0]}
    weights = checks.checked_weights(features, "w", LOGITS)
    assert weights.dtype == tf.float32
    assert weights.numpy().tolist() == expected
    column = tf.feature_column.numeric_column("w", normalizer_fn=lambda value: 10 * value)
    by_column = checks.checked_weights(features, column, LOGITS)
    np.testing.assert_allclose(by_column, 10 * np.array(expected))


@pytest.mark.parametrize("shape", [(None,), (None, 1), (None, 2), (3, 2)])
def test_weights_of_partly_known_shapes(shape):
    with tf.Graph().as_default():
        weights = checks.checked_weights({"w": placeholder(*shape)}, "w", placeholder(None, 2))
        assert weights.shape.rank == 2
        unknown = placeholder(known_rank=False)
        assert checks.checked_weights({"w": unknown}, "w", placeholder(3, 2)).shape.rank is None


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"x": [1.0]}, r"Feature w \(weight_column\) is not in features dictionary. .*\['x'\]"),
        ([1.0], "is not in features dictionary"),
        (None, "is not in features dictionary"),
        ({"w": tf.sparse.from_dense([1.0])}, "must be dense"),
        ({"w": ["a"]}, "must be numeric"),
        ({"w": [True]}, "must be numeric"),
        ({"w": tf.ones([3, 3])}, "can not be broadcast"),
        ({"w": tf.ones([2, 2])}, "can not be broadcast"),
        ({"w": tf.ones([3, 1, 2])}, "can not be broadcast"),
    ],
)
def test_weights_that_do_not_fit(features, message):
    with pytest.raises(ValueError, match=message):
        checks.checked_weights(features, "w", LOGITS)


def test_weight_columns():
    column = tf.feature_column.numeric_column("w")
    for one in (None, "w", column):
        assert checks.check_weight_column(one) is one
    for other in (3, tf.feature_column.categorical_column_with_identity("w", 2), ["w"]):
        with pytest.raises(TypeError, match="weight_column="):
            checks.check_weight_column(other)


@pytest.mark.parametrize("optional", [(), ("features",), ("loss_reduction",)], ids=str)
def test_a_loss_fn_gets_what_it_takes(optional):
    seen = {}

    def note(**arguments):
        seen.update(arguments)
        return tf.ones([3, 1])

    loss_fns = {
        (): lambda labels, logits: note(labels=labels, logits=logits),
        ("features",): lambda labels, logits, features: note(
            labels=labels, logits=logits, features=features
        ),
        ("loss_reduction",): lambda logits, labels, loss_reduction: note(
            labels=labels, logits=logits, loss_reduction=loss_reduction
        ),
    }
    loss_fn = checks.check_loss_fn(loss_fns[optional])
    losses = checks.call_loss_fn(loss_fn, "the labels", LOGITS, {"x": 1}, 1, "sum")
    assert losses.shape == [3, 1]
    everything = {"features": {"x": 1}, "loss_reduction": "sum"}
    assert seen == {
        "labels": "the labels",
        "logits": LOGITS,
        **{name: everything[name] for name in optional},
    }


@pytest.mark.parametrize(
    ("losses", "fits"),
    [(tf.ones([3, 1]), True), ([[1.0]] * 3, True), (1.0, False), ([1.0] * 3, False),
     (tf.ones([3, 2]), False), (tf.ones([2, 1]), False)],
    ids=str,
)  # fmt: skip
def test_a_loss_fn_returns_a_loss_for_each_example(losses, fits):
    call = functools.partial(
        checks.call_loss_fn, lambda labels, logits: losses, None, LOGITS, None, 1, "sum"
    )
    if fits:
        assert call().shape == [3, 1]
    else:
        with pytest.raises(ValueError, match=r"losses of shape \(3, 1\)"):
            call()


def test_arguments_of_a_loss_fn():
    assert checks.check_loss_fn(None) is None
    for bad in (
        lambda labels: 1,
        lambda logits: 1,
        lambda labels, logits, other: 1,
        lambda labels, logits, **more: 1,
    ):
        with pytest.raises(ValueError, match="labels, logits; and may contain features"):
            checks.check_loss_fn(bad)
    with pytest.raises(TypeError, match="loss_fn='mse'"):
        checks.check_loss_fn("mse")
