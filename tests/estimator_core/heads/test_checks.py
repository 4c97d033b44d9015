import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.heads import checks
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.class_predictions import LabelVocabulary

LOGITS = tf.zeros([3, 2])


def placeholder(*shape, dtype=tf.float32, known_rank=True):
    return tf1.placeholder(dtype, list(shape) if known_rank else None)


def run(fetch, feeds):
    with tf1.Session() as session:
        return session.run(fetch, feeds)


@pytest.mark.parametrize("make_head", [est.MultiClassHead, est.MultiLabelHead, binary_or_multi_class_head])
def test_a_number_of_classes_may_be_a_tensor_of_a_graph(make_head, graph):
    assert make_head(tf.constant(4)).logits_dimension == 4
    with pytest.raises(ValueError, match="known before the graph runs"):
        make_head(placeholder(dtype=tf.int32))


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64"])
def test_logits_become_float32(dtype):
    assert checks.checked_logits(np.zeros([1, 2], dtype), 2).dtype == tf.float32


@pytest.mark.parametrize("shape", [(3, 2), (3, 4, 2), (None, 2), (3, None)])
def test_logits_that_fit(shape, graph):
    assert checks.checked_logits(placeholder(*shape), 2).shape.as_list() == list(shape)
    assert checks.checked_logits(placeholder(known_rank=False), 2).shape.rank is None


@pytest.mark.parametrize("shape", [(), (2,), (None,), (3, 1), (2, 3)])
def test_logits_that_do_not_fit(shape):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="logits_dimension=2"):
        checks.checked_logits(placeholder(*shape), 2)
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
        ((3, None), (3, 1), 1, (3, 1)),  # unknown shapes are checked when the graph runs
        ((3, None), (3, 2), 2, (3, 2)),
        ((3,), None, 1, (3, 1)),
    ],
)
def test_shapes_of_labels(shape, logits_shape, dimension, wanted, graph):
    logits = placeholder(*(logits_shape or ()), known_rank=logits_shape is not None)
    assert checks.checked_labels(placeholder(*shape), logits, dimension).shape.as_list() == list(wanted)


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


def error_of(build, feeds):
    """Returns the error of running the graph."""
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        run(build, feeds)
    return " ".join(str(error.value).split())


@pytest.mark.parametrize(
    ("known", "fed"), [(None, [3, 1]), (None, [2]), (None, []), ((3, None), [3, 1])], ids=str
)
def test_shapes_of_logits_are_checked_when_the_graph_runs(graph, known, fed):
    logits = placeholder(*(known or ()), known_rank=known is not None)
    checked = checks.checked_logits(logits, 2)
    assert run(checked, {logits: np.zeros([3, 2])}).shape == (3, 2)
    message = error_of(checked, {logits: np.zeros(fed)})
    assert "logits shape must be [D0, D1, ... DN, logits_dimension]" in message
    assert f"Received: logits with shape] [{' '.join(map(str, fed))}]" in message


@pytest.mark.parametrize(
    ("fed", "logits_shape", "dimension"),
    [
        ([2, 2, 2], [2, 2, 3], 2),
        ([4, 1], [4, 3], 1),
        ([4], [4, 3], 1),  # a last dimension of 1 may be missing
        ([1], [1, 1], 1),
    ],
    ids=str,
)
def test_labels_of_unknown_rank(fed, logits_shape, dimension, graph):
    labels = placeholder(known_rank=False)
    logits = placeholder(*[None] * len(logits_shape))
    checked = checks.checked_labels(labels, logits, dimension)
    given = np.arange(float(np.prod(fed))).reshape(fed)
    found = run(checked, {labels: given, logits: np.zeros(logits_shape)})
    assert found.tolist() == given.reshape([*logits_shape[:-1], dimension]).tolist()


@pytest.mark.parametrize(
    ("known", "fed", "dimension"),
    [
        (None, [1, 4], 1),  # without the check: losses of shape [4, 4]
        (None, [4, 4], 4),
        (None, [4], 4),
        (None, [], 1),
        (None, [4, 1, 1], 1),
        ([None, 1], [1, 1], 1),
        ([None, 1], [5, 1], 1),
        ([None], [1], 1),
        ([None, None], [1, 4], 1),
        ([None, None], [4, 3], 1),
        ([1, 1], [1, 1], 1),
    ],
    ids=str,
)
def test_shapes_of_labels_are_checked_when_the_graph_runs(graph, known, fed, dimension):
    labels = placeholder(*(known or ()), known_rank=known is not None)
    logits = placeholder(None, 4 if fed == [4] else dimension)
    logits_shape = [5 if fed == [4, 4] else 4, logits.shape[-1]]
    checked = checks.checked_labels(labels, logits, dimension)
    message = error_of(checked, {labels: np.zeros(fed), logits: np.zeros(logits_shape)})
    assert "labels must have the shape of the logits" in message
    assert "reshape them in input_fn" in message
    received = [*fed, 1] if known in ([None],) else fed
    shapes = " ".join(map(str, received)), " ".join(map(str, logits_shape))
    assert f"[{shapes[0]}] [for logits with shape] [{shapes[1]}]" in message


@pytest.mark.parametrize(("shape", "dimension"), [((3, 2), 2), ((3, 4, 2), 2), ((3, 1), 1), ((4, 1), 1)])
def test_shapes_that_are_known_add_no_op(shape, dimension, graph):
    labels, logits = placeholder(*shape), placeholder(*shape)
    weights = placeholder(*shape)
    before = len(graph.get_operations())
    assert checks.checked_labels(labels, logits, dimension) is labels
    assert checks.checked_weights({"w": weights}, "w", logits) is weights
    loss = checks.call_loss_fn(lambda labels, logits: weights, labels, logits, {}, dimension, "sum")
    assert loss is weights
    assert len(graph.get_operations()) == before


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


WORDS = LabelVocabulary(["a", "b", "c"], 3)


def test_class_ids_of_words_and_the_check_that_runs_with_the_graph():
    assert checks.checked_class_ids(tf.constant(["c", "a"]), 3, WORDS).numpy().tolist() == [2, 0]
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
        ([1], WORDS, "should be string"),
        ([1j], None, "should be integer"),
        (["c", "d"], WORDS, r"in label_vocabulary \[a, b, c\]. Received .*'c' b'd'\]"),
        ([[1], [-1]], None, r"<= n_classes - 1 \(2\). Received labels: \[1 -1\]"),
        ([[1], [3]], None, r"<= n_classes - 1 \(2\). Received labels: \[1 3\]"),
        ([[1], [7]], None, r"<= n_classes - 1 \(2\). Received labels: \[1 7\]"),
    ],
)
def test_labels_that_are_no_class_ids(labels, vocabulary, message):
    with pytest.raises(ValueError, match=message):
        checks.checked_class_ids(tf.constant(labels), 3, vocabulary)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1.0, 2.0, 0.5], [[1.0], [2.0], [0.5]]),
        ([[1], [2], [3]], [[1.0], [2.0], [3.0]]),
        ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    ],
)
def test_weights_by_name_or_column(given, expected):
    assert checks.checked_weights(None, None, LOGITS) == 1.0
    features = {"w": given, "x": [0.0]}
    weights = checks.checked_weights(features, "w", LOGITS)
    assert weights.dtype == tf.float32
    assert weights.numpy().tolist() == expected
    column = tf.feature_column.numeric_column("w", normalizer_fn=lambda value: 10 * value)
    by_column = checks.checked_weights(features, column, LOGITS)
    np.testing.assert_allclose(by_column, 10 * np.array(expected))


@pytest.mark.parametrize("shape", [(None,), (None, 1), (None, 2), (3, 2)])
def test_weights_of_partly_known_shapes(shape, graph):
    assert checks.checked_weights({"w": placeholder(*shape)}, "w", placeholder(None, 2)).shape.rank == 2


@pytest.mark.parametrize(
    ("known", "fed", "loss", "fits"),
    [
        (None, [4, 1], [4, 1], True),
        (None, [4, 1], [4, 2], True),
        (None, [4, 2], [4, 2], True),
        ([None, 1], [4, 1], [4, 2], True),
        ([None], [4], [4, 1], True),
        (None, [4, 3], [4, 1], False),  # without the check: losses of shape [4, 3]
        (None, [1, 1], [4, 1], False),
        (None, [4], [4, 1], False),  # would be [4, 4]
        (None, [4, 1, 1], [4, 1], False),
        ([None, 1], [1, 1], [4, 1], False),
        ([None, None], [1, 2], [4, 2], False),
        ([None], [1], [4, 1], False),
    ],
    ids=str,
)
@pytest.mark.parametrize("loss_is_known", [True, False], ids=["known", "unknown"])
def test_shapes_of_weights_are_checked_when_the_graph_runs(known, fed, loss, fits, loss_is_known, graph):
    weights = placeholder(*(known or ()), known_rank=known is not None)
    losses = placeholder(*(loss if loss_is_known else [None, loss[1]]))
    checked = checks.checked_weights({"w": weights}, "w", losses)
    feeds = {weights: np.ones(fed), losses: np.zeros(loss)}
    if fits:
        assert run(checked, feeds).shape == (4, fed[1] if len(fed) > 1 else 1)
    else:
        message = error_of(checked, feeds)
        assert "weight_column w must have one weight for each loss" in message
        assert "reshape it in input_fn" in message
        received = " ".join(map(str, [*fed, 1] if known == [None] else fed))
        assert f"[{received}] [for losses with shape] [4 {loss[1]}]" in message


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
        ({"w": tf.ones([1, 1])}, "can not be broadcast"),
        ({"w": tf.ones([2])}, "can not be broadcast"),
        ({"w": 2.0}, "can not be broadcast"),
        ({"w": tf.ones([3, 1, 2])}, "can not be broadcast"),
    ],
)
def test_weights_that_do_not_fit(features, message):
    with pytest.raises(ValueError, match=message):
        checks.checked_weights(features, "w", LOGITS)


def test_a_weight_column_is_a_name_or_a_numeric_column():
    for one in (None, "w", tf.feature_column.numeric_column("w")):
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

    def noted(logits, labels, loss_reduction):
        return note(labels=labels, logits=logits, loss_reduction=loss_reduction)

    loss_fns = {
        (): lambda labels, logits: note(labels=labels, logits=logits),
        ("features",): lambda labels, logits, features: note(labels=labels, logits=logits, features=features),
        ("loss_reduction",): noted,
    }
    loss_fn = checks.check_loss_fn(loss_fns[optional])
    assert checks.call_loss_fn(loss_fn, "the labels", LOGITS, {"x": 1}, 1, "sum").shape == [3, 1]
    everything = {"features": {"x": 1}, "loss_reduction": "sum"}
    assert seen == {"labels": "the labels", "logits": LOGITS, **{name: everything[name] for name in optional}}


@pytest.mark.parametrize(
    ("losses", "fits"),
    [(tf.ones([3, 1]), True), ([[1.0]] * 3, True), (1.0, False), ([1.0] * 3, False),
     (tf.ones([3, 2]), False), (tf.ones([2, 1]), False)],
    ids=str,
)  # fmt: skip
def test_a_loss_fn_returns_a_loss_for_each_example(losses, fits):
    call = functools.partial(checks.call_loss_fn, lambda labels, logits: losses, None, LOGITS, None, 1, "sum")
    if fits:
        assert call().shape == [3, 1]
    else:
        with pytest.raises(ValueError, match=r"losses of shape \(3, 1\)"):
            call()


@pytest.mark.parametrize(
    ("fed", "fits"), [([4, 1], True), ([4], False), ([], False), ([3, 1], False)], ids=str
)
def test_losses_of_unknown_shape_are_checked_when_the_graph_runs(fed, fits, graph):
    losses, logits = placeholder(known_rank=False), placeholder(None, 2)
    found = checks.call_loss_fn(lambda labels, logits: losses, None, logits, None, 1, "sum")
    assert found.shape.as_list() == [None, 1]
    feeds = {losses: np.ones(fed), logits: np.zeros([4, 2])}
    if fits:
        assert run(found, feeds).shape == (4, 1)
    else:
        assert "loss_fn must return a loss for each example" in error_of(found, feeds)


def test_arguments_of_a_loss_fn():
    assert checks.check_loss_fn(None) is None
    one, other = (lambda labels: 1), (lambda logits: 1)
    for bad in (one, other, lambda labels, logits, other: 1, lambda labels, logits, **more: 1):
        with pytest.raises(ValueError, match="labels, logits; and may contain features"):
            checks.check_loss_fn(bad)
    with pytest.raises(TypeError, match="loss_fn='mse'"):
        checks.check_loss_fn("mse")
