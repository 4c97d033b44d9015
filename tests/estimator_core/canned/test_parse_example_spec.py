import pytest
import tensorflow as tf

import estimator_core as est

_A = tf.feature_column.numeric_column("a")
_W = tf.feature_column.numeric_column("w", dtype=tf.int64)


def _one(dtype=tf.float32, default=None, size=1):
    return tf.io.FixedLenFeature((size,), dtype, default)


@pytest.mark.parametrize(
    ("arguments", "added"),
    [
        ({}, {"y": _one(tf.int64)}),
        ({"label_dtype": tf.string, "label_default": "x"}, {"y": _one(tf.string, "x")}),
        ({"weight_column": "w"}, {"y": _one(tf.int64), "w": _one()}),
        ({"weight_column": _W}, {"y": _one(tf.int64), "w": _one(tf.int64)}),
    ],
)
def test_a_classifier_spec_adds_the_label_and_the_weight(arguments, added):
    assert est.classifier_parse_example_spec([_A], "y", **arguments) == {"a": _one(), **added}


def test_a_regressor_spec_adds_a_label_of_its_dimension():
    spec = est.regressor_parse_example_spec([_A], "y", label_default=0.0, label_dimension=2)
    assert spec == {"a": _one(), "y": _one(default=0.0, size=2)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_key": "a"}, r"label should not be used as feature.*'a'"),
        ({"weight_column": "a"}, "weight_column should not be used as feature"),
        ({"weight_column": "y"}, "weight_column should not be used as feature"),
        ({"feature_columns": "a"}, "feature_columns"),
        ({"weight_column": 3}, "weight_column=3"),
    ],
)
def test_contradictions_are_refused(arguments, message):
    for parse_example_spec in (est.regressor_parse_example_spec, est.classifier_parse_example_spec):
        with pytest.raises(ValueError, match=message):
            parse_example_spec(**{"feature_columns": [_A], "label_key": "y", **arguments})
