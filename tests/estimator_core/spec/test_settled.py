"""The values that a premade model depends on."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.logits.dnn import dnn_logit_fn_builder
from estimator_core.spec.settled import take_fingerprint, with_parts

fc = tf.feature_column


def fingerprint(*parts):
    return take_fingerprint(with_parts(lambda: None, parts))


def words(*names):
    return fc.embedding_column(fc.categorical_column_with_vocabulary_list("word", names), 3)


def test_premade_models_have_one_and_a_model_fn_of_the_users_has_none(tmp_path):
    def make(**options):
        columns = [fc.numeric_column("x"), words("a", "b")]
        return est.DNNClassifier([4], columns, model_dir=str(tmp_path), **options)._model_fn

    assert take_fingerprint(make()) is not None
    assert take_fingerprint(make()) == take_fingerprint(make())
    assert take_fingerprint(make(optimizer=lambda: None)) == take_fingerprint(make())  # of training
    assert take_fingerprint(make(n_classes=3)) != take_fingerprint(make())
    assert take_fingerprint(make(activation_fn=tf.nn.tanh)) != take_fingerprint(make())
    assert take_fingerprint(make(activation_fn=lambda x: x)) is None
    assert take_fingerprint(lambda features, labels, mode: None) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (words("a", "b"), words("b", "a")),
        (fc.numeric_column("x"), fc.numeric_column("x", dtype=tf.float64)),
        (dnn_logit_fn_builder(1, [3], [fc.numeric_column("x")]), dnn_logit_fn_builder(1, [4], [])),
        ([1, 2], [1, 2, 3]),
        ([1], [True]),
        ([1], [1.0]),
        ({"a": 1}, {"a": 2}),
        (np.array([1.0]), np.array([2.0])),
        (functools.partial(tf.nn.leaky_relu, alpha=0.1), functools.partial(tf.nn.leaky_relu, alpha=0.2)),
        (est.RegressionHead(1), est.RegressionHead(2)),
        (est.RegressionHead(2), est.BinaryClassHead()),
    ],
)
def test_what_differs_has_another_one(one, other):
    assert fingerprint(one) is not None
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


def test_a_list_that_is_changed_has_another_one():
    columns = [fc.numeric_column("x")]
    logit_fn = dnn_logit_fn_builder(1, [3], columns)
    before = fingerprint(logit_fn)
    columns.append(fc.numeric_column("y"))
    assert fingerprint(logit_fn) != before


class Column(type(fc.numeric_column("x"))):
    """A column of the user's."""


@pytest.mark.parametrize(
    "unknown",
    [
        fc.numeric_column("x", normalizer_fn=lambda x: x),
        Column("x", (1,), None, tf.float32, None),
        iter([1]),
        object(),
        functools.partial(lambda x: x),
        np.array([object()]),
        np.zeros(1 << 20),
        tf.nn,
        est.BinaryClassHead(loss_fn=lambda labels, logits: logits),
    ],
    ids=lambda unknown: type(unknown).__name__,
)
def test_what_is_not_known_has_none(unknown):
    assert fingerprint([unknown]) is None


def test_what_holds_itself_has_none():
    held = []
    held.append(held)
    assert fingerprint(held) is None
