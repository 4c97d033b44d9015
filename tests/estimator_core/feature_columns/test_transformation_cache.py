import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import FeatureTransformationCache, StateManager

fc = tf.feature_column


def test_a_shared_source_is_computed_once():
    calls = []

    def normalizer_fn(value):
        calls.append(value)
        return value

    age = fc.numeric_column("age", normalizer_fn=normalizer_fn)
    with tf.Graph().as_default():
        cache = FeatureTransformationCache({"age": tf.constant([1.0])})
        state_manager = StateManager()
        first = cache.get(fc.bucketized_column(age, [0.0]), state_manager)
        assert first is not cache.get(fc.bucketized_column(age, [5.0]), state_manager)
        assert cache.get(age, state_manager) is cache.get(age, state_manager)
    assert len(calls) == 1


def test_a_feature_of_unknown_rank(session):
    placeholder = tf1.placeholder(tf.float32)
    value = FeatureTransformationCache({"x": placeholder}).get("x", None)
    assert session.run(value, {placeholder: [1.0, 2.0]}).tolist() == [[1.0], [2.0]]
    assert session.run(value, {placeholder: [[1.0, 2.0]]}).tolist() == [[1.0, 2.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot have rank 0"):
        session.run(value, {placeholder: 1.0})


def test_sparse_rank_1_becomes_rank_2(session):
    sparse = tf.SparseTensor([[1]], [5], [3])
    found = session.run(FeatureTransformationCache({"x": sparse}).get("x", None))
    assert (found.dense_shape.tolist(), found.indices.tolist()) == ([3, 1], [[1, 0]])


def test_a_key_must_be_a_feature_name_or_a_column():
    with pytest.raises(TypeError, match="feature name or a feature column"):
        FeatureTransformationCache({}).get(3, None)
