"""Lookups of one id for each example, and their training, are those of TensorFlow 1, bit for bit."""

import functools
import gc
import warnings
import weakref

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.feature_columns.linear_model import linear_model

fc = tf.feature_column
IDS = [[3], [0], [-1], [4], [3], [-7], [1]]
WORDS = [["b"], ["a"], [""], ["never seen"], ["b"], ["c"], ["a"]]

words_of = functools.partial(fc.categorical_column_with_vocabulary_list, "f")
COLUMNS = {
    "identity": (fc.categorical_column_with_identity("f", 5), IDS),
    "identity_with_default": (fc.categorical_column_with_identity("f", 4, default_value=2), IDS),
    "hash_of_text": (fc.categorical_column_with_hash_bucket("f", 6), WORDS),
    "hash_of_numbers": (fc.categorical_column_with_hash_bucket("f", 6, tf.int64), IDS),
    "words": (words_of(["a", "b", "c"]), WORDS),
    "words_with_default": (words_of(["a", "b", "c"], default_value=1), WORDS),
    "words_with_others": (words_of(["a", "b"], num_oov_buckets=2), WORDS),
    "numbers": (words_of([4, 3, -1], tf.int64), IDS),
}
EMBEDDING = fc.embedding_column(COLUMNS["identity"][0], 3)


def holder_of(feature, static_rows):
    """A placeholder for a feature, and the value fed to it."""
    if isinstance(feature, tf1.SparseTensorValue):
        return tf1.sparse_placeholder(tf.int64, [None, 1]), feature
    feature = np.array(feature)
    dtype = tf.string if feature.dtype.kind == "U" else tf.as_dtype(feature.dtype)
    return tf1.placeholder(dtype, [static_rows, *feature.shape[1:]]), feature


def embedded(column, feature, for_training, static_rows=None):
    """The value of the layer, and the types of the operations of its graph."""
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        holder, feature = holder_of(feature, static_rows)
        init = tf1.random_normal_initializer(seed=3)
        with tf1.variable_scope("", initializer=init):
            layer = input_layer({"f": holder}, [column], for_training=for_training)
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        return session.run(layer, {holder: feature}), {o.type for o in graph.get_operations()}


def trained(output, feature, optimizer, static_rows=None, steps=3):
    """The output, its gradient and the weights after some steps; and the types of the operations.

    Args:
      output: Function of the features that makes a variable and returns [rows, width].
    """
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        holder, feature = holder_of(feature, static_rows)
        init = tf1.random_normal_initializer(seed=3)
        with tf1.variable_scope("", initializer=init, use_resource=True):
            y = output({"f": holder})
        forward = {operation.type for operation in graph.get_operations()}
        factors = np.linspace(-1, 2, len(feature) * y.shape[1]).reshape(len(feature), -1)
        loss = tf.reduce_sum(tf.sin(y) * factors.astype(np.float32))
        table = next(v for v in tf1.trainable_variables() if "bias" not in v.name)
        optimizer = optimizer()
        ((gradient, _),) = pairs = optimizer.compute_gradients(loss, [table])
        clipped, _ = tf.clip_by_global_norm([gradient], 1.5)
        step = optimizer.apply_gradients([(clipped[0], table)])
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        for _ in range(steps):
            session.run(step, {holder: feature})
        found = session.run([y, gradient.values, gradient.indices, table], {holder: feature})
        return found, forward, pairs


OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf1.train.AdamOptimizer(0.1),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.1),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}


def check_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    assert all(np.abs(each).sum() > 0.1 for each in expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
@pytest.mark.parametrize("name", sorted(COLUMNS))
@pytest.mark.parametrize("static_rows", [None, 7])
def test_an_embedding_is_trained_as_tensorflow_1_does(name, combiner, static_rows):
    ids, feature = COLUMNS[name]
    column = fc.embedding_column(ids, 3, combiner, initializer=tf1.random_normal_initializer(seed=3))
    arguments = feature, OPTIMIZERS["momentum"], static_rows
    expected, general, _ = trained(lambda f: tf1.feature_column.input_layer(f, [column]), *arguments)
    found, operations, _ = trained(lambda f: input_layer(f, [column]), *arguments)
    check_same(found, expected)
    assert "SparseFillEmptyRows" in general
    assert "SparseFillEmptyRows" not in operations
    untrained, _ = embedded(column, feature, True, static_rows)
    evaluated, _ = embedded(column, feature, False, static_rows)
    assert evaluated.tobytes() == untrained.tobytes()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
@pytest.mark.parametrize("name", ["identity", "words", "hash_of_text"])
def test_a_linear_model_is_trained_as_tensorflow_1_does(name, combiner, optimizer):
    column, feature = COLUMNS[name]
    arguments = feature * 40, OPTIMIZERS[optimizer]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*add_variable", UserWarning)  # within TensorFlow
        expected, general, _ = trained(
            lambda f: tf1.feature_column.linear_model(f, [column], 2, combiner), *arguments
        )
    found, operations, _ = trained(lambda f: linear_model(f, [column], 2, combiner).logits, *arguments)
    check_same(found, expected)
    assert "SparseFillEmptyRows" in general
    assert "SparseFillEmptyRows" not in operations


def test_the_gradient_has_a_row_for_each_different_id():
    """Clipping takes the norm of the rows: with a row for each example, it would be another one."""
    found, _, ((gradient, _),) = trained(lambda f: input_layer(f, [EMBEDDING]), IDS, OPTIMIZERS["sgd"])
    assert found[2].tolist() == [3, 0, 4, 1]  # as they occur; 0 also stands for those without one
    assert isinstance(gradient, tf.IndexedSlices)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8])
def test_ids_may_be_of_any_integer_type(dtype):
    """The highest number of an unsigned type counts as missing, as -1 does."""
    ids = np.array(IDS).astype(dtype) if dtype != np.uint8 else np.uint8([[3], [255], [1]])
    init = tf1.random_normal_initializer(seed=3)
    column = fc.embedding_column(COLUMNS["identity"][0], 3, initializer=init)
    layers = tf1.feature_column.input_layer, input_layer
    expected, found = (trained(lambda f, of=of: of(f, [column]), ids, OPTIMIZERS["sgd"])[0] for of in layers)
    check_same(found, expected)


@pytest.mark.more
@pytest.mark.parametrize("kind", ["embedding", "linear"])
def test_a_graph_is_not_kept_for_ever(kind):
    column = COLUMNS["identity"][0]
    kept = []
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            if kind == "linear":
                output = linear_model({"f": tf.constant(IDS)}, [column]).logits
            else:
                output = input_layer({"f": tf.constant(IDS)}, [fc.embedding_column(column, 3)])
            tf.gradients(output, tf1.trainable_variables())
        kept.append(weakref.ref(graph))
        del graph, output
    gc.collect()
    assert [each() for each in kept] == [None, None]


def test_an_exported_linear_model_has_gradients_of_tensorflow_alone(graph):
    """Another process knows no other ones."""
    linear_model({"f": tf.constant(IDS)}, [COLUMNS["identity"][0]], for_training=False)
    assert not any("_gradient_op_type" in node.attr for node in graph.as_graph_def().node)


@pytest.mark.parametrize("for_training", [True, False])
def test_an_id_that_is_too_high_is_an_error(for_training):
    with pytest.raises(tf.errors.InvalidArgumentError):
        embedded(EMBEDDING, [[2], [5]], for_training)


def test_numbers_that_are_no_ids_are_refused_as_before():
    for for_training in (True, False):
        with pytest.raises(ValueError, match="not integer"):
            embedded(EMBEDDING, [[2.0], [3.0]], for_training)


@pytest.mark.parametrize(
    ("column", "feature"),
    [
        (EMBEDDING, [[1, 2], [2, -1]]),
        (fc.embedding_column(COLUMNS["identity"][0], 3, max_norm=0.5), IDS),
        (EMBEDDING, tf1.SparseTensorValue([[0, 0], [2, 0]], [4, 1], [3, 1])),
    ],
)
def test_all_else_takes_the_general_way(column, feature):
    expected, general = embedded(column, feature, True)
    found, operations = embedded(column, feature, False)
    assert operations == general
    assert found.shape == expected.shape


def test_a_table_in_parts_takes_the_general_way(graph, session):
    column = fc.embedding_column(COLUMNS["identity"][0], 3, initializer=tf1.ones_initializer())
    with tf1.variable_scope("", partitioner=tf1.fixed_size_partitioner(2)):
        layer = input_layer({"f": tf.constant(IDS)}, [column], for_training=False)
    session.run(tf1.global_variables_initializer())
    assert session.run(layer).sum(axis=1).tolist() == [3, 3, 0, 3, 3, 0, 3]
    assert "SparseFillEmptyRows" in {each.type for each in graph.get_operations()}


def test_ids_may_come_from_a_variable(session):
    """An input_fn of 2017 could count its batches in one."""
    count = tf1.get_variable("count", initializer=0, use_resource=True)
    ids = tf.reshape(count.assign_add(1, read_value=True), [1, 1]) + tf.constant([[0], [1]])
    layer = input_layer({"f": ids}, [EMBEDDING])
    step = tf1.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(layer))
    table = tf1.trainable_variables()[-1]
    session.run(tf1.global_variables_initializer())
    before = session.run(table)
    session.run(step)
    moved = before - session.run(table)
    np.testing.assert_allclose(moved.sum(axis=1), [0, 3, 3, 0, 0], atol=1e-6)
