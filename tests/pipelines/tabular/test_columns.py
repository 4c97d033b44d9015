import math

import numpy as np
import pytest
import tensorflow as tf

from estimator_core.boosted_trees.columns import checked_columns, column_matrix
from pipelines.tabular import plan as plans
from pipelines.tabular.columns import dnn_columns, keys_of_words, linear_columns, tree_columns
from pipelines.tabular.plan import CategoricalFeature, NumericFeature, TextFeature
from tests.pipelines.tabular.one_number_one_city import BINARY, FakeTransform, make_plan

PLAN = make_plan(BINARY)
WITH_TEXT = PLAN.model_copy(update={"text": (TextFeature(column="note", hash_buckets=50),)})
WORD, MEMBER = (CategoricalFeature(column=name, num_values=n) for name, n in (("word", 70), ("member", 2)))
CODE = CategoricalFeature(column="code", num_values=3_000, hash_buckets=6_000)


def categories(*features):
    """Returns a plan of categories alone."""
    return PLAN.model_copy(update={"numeric": (), "categorical": features})


class Vocabulary(FakeTransform):
    """The words of two categories: the first has 70 values, the second two."""

    def vocabulary_by_name(self, name):
        first = [f"0=word {number}".encode() for number in range(70)]
        return [first[0], b"1=yes", *first[1:], b"1=no"]


def values_of(columns, features):
    """Returns the values of the columns for these features, side by side."""
    return column_matrix(features, checked_columns(columns)).numpy()


def test_words_are_columns_of_weights_and_not_of_trees():
    transform = FakeTransform(tf.string)
    linear, dnn = linear_columns(WITH_TEXT, transform), dnn_columns(WITH_TEXT, transform)
    assert (linear[-1].key, linear[-1].num_buckets) == ("text_0", 50)
    assert dnn[-1].categorical_column == linear[-1]
    assert dnn[-1].combiner == "sqrtn"  # long texts weigh no more than short ones
    trees = [column.name for column in tree_columns(WITH_TEXT, transform)]
    assert trees == ["numeric", "category_0_indicator"]


def test_a_missing_number_is_the_mean_to_weights_and_missing_to_trees():
    numeric = [NumericFeature(column=name, center=0.0, has_missing=name == "x") for name in "xy"]
    plan = PLAN.model_copy(update={"numeric": tuple(numeric), "categorical": ()})
    numbers = tf.constant([[math.nan, -12.0], [1.5, 7.0]])
    features = {"numeric": numbers, "numeric_is_missing": tf.constant([[1.0], [0.0]])}
    transform = FakeTransform(tf.string)
    dnn = values_of(dnn_columns(plan, transform), features)
    assert dnn.tolist() == [[0, -10, 1], [1.5, 7, 0]]  # at most ten standard deviations
    trees = values_of(tree_columns(plan, transform), features)
    assert trees[1].tolist() == [1.5, 7]
    assert np.isnan(trees[0, 0])
    assert trees[0, 1] == -12
    linear = linear_columns(plan, transform)
    assert linear[0].num_buckets == 2 * 3  # two quantile buckets and one of missing values, twice
    assert linear[1:] == dnn_columns(plan, transform)
    few_rows = plan.model_copy(update={"num_buckets": 0})
    assert linear_columns(few_rows, transform) == linear[1:]


def test_frequent_categories_are_indicators_of_trees_and_rare_ones_a_number():
    plan = categories(WORD, MEMBER, CODE)
    columns = tree_columns(plan, Vocabulary(tf.string))
    names = [column.name for column in columns]
    assert names == ["category_0", "category_0_indicator", "category_1_indicator", "category_2"]
    features = {
        "category_0": tf.constant([0, 70, 72]),  # the first, the last, one that is not known
        "category_1": tf.constant([1, 71, 72]),
        "category_2": tf.constant([5_999, 0, 1]),
    }
    found = values_of(columns, features)
    assert found.shape == (3, 1 + 64 + 2 + 1)
    assert found[:, 0].tolist() == [0, 70, 72]
    assert found[:, 1:65].sum(axis=1).tolist() == [1, 0, 0]
    assert found[:, 65:67].tolist() == [[1, 0], [0, 1], [0, 0]]
    assert found[:, 67].tolist() == [5_999, 0, 1]


def test_means_of_the_label_go_before_ranks():
    plan = categories(WORD, MEMBER, CODE)
    assert keys_of_words(plan) == ("category_0", "category_1")
    means = np.linspace(0, 1, 73).astype(np.float32)
    means[1] = np.nan  # of too few rows
    columns = tree_columns(plan, Vocabulary(tf.string), means)
    names = [column.name for column in columns]
    assert names == ["category_0", "category_0_indicator", "category_1", "category_1_indicator", "category_2"]
    found = values_of(columns[:1], {"category_0": tf.constant([0, 36, 1, 72])})
    assert found[[0, 1, 3], 0].tolist() == [0, 0.5, 1]
    assert np.isnan(found[2, 0])


@pytest.mark.parametrize(("num_values", "dimension"), [(3, 3), (16, 4), (10_000, 16)])
def test_the_dimension_of_an_embedding_grows_with_the_values(num_values, dimension):
    plan = categories(CategoricalFeature(column="city", num_values=num_values))
    assert dnn_columns(plan, FakeTransform(tf.string))[-1].dimension == dimension


def test_an_hour_is_a_number_to_trees():
    class Hours(FakeTransform):
        def vocabulary_by_name(self, name):
            return [b"0=17", b"1=missing", b"0=4", b"0=[missing]"]

    plan = categories(CategoricalFeature(column="at", num_values=24, date="iso", part="hour"))
    assert keys_of_words(plan) == ()
    ids = tf.constant([2, 0, 3, 4])
    (column,) = tree_columns(plan, Hours(tf.string))
    found = values_of([column], {"category_0": ids})
    assert found[:2, 0].tolist() == [4, 17]
    assert np.isnan(found[2:, 0]).all()  # no date, and an hour that no training row had


@pytest.mark.parametrize("has_means", [False, True])
def test_trees_see_the_same_in_a_matrix_of_categories(monkeypatch, has_means):
    plan = categories(WORD, MEMBER)
    means = np.linspace(0, 1, 73).astype(np.float32) if has_means else None
    rows = np.array([[0, 71], [70, 70], [3, 71], [69, 71]])
    separate = values_of(
        tree_columns(plan, Vocabulary(tf.string), means),
        {"category_0": tf.constant(rows[:, 0]), "category_1": tf.constant(rows[:, 1])},
    )
    monkeypatch.setattr(plans, "MAX_SEPARATE", 1)
    matrix = values_of(tree_columns(plan, Vocabulary(tf.string), means), {"category": tf.constant(rows)})
    indicators = matrix[:, 2:]
    if has_means:
        np.testing.assert_array_equal(matrix[:, 0], separate[:, 0])
        np.testing.assert_array_equal(matrix[:, 1], separate[:, 65])
        np.testing.assert_array_equal(indicators, np.delete(separate, [0, 65], axis=1))
    else:
        assert np.isnan(matrix[:, 1]).sum() >= 3  # two words are indicators alone
        np.testing.assert_array_equal(indicators, separate[:, 1:])
    assert keys_of_words(plan) == ("category",)
    assert [column.key for column in linear_columns(plan, Vocabulary(tf.string))][-1] == "category"
    assert dnn_columns(plan, Vocabulary(tf.string))[-1].dimension == 64
