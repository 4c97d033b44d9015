import numpy as np
import pytest
import tensorflow as tf

from pipelines.tabular.inputs import HELD_OUT_KEY
from pipelines.tabular.label_means import MAX_CONSTANTS, MIN_ROWS, has_label_means, label_means
from pipelines.tabular.plan import WEIGHT_KEY, LabelPlan
from tests.pipelines.tabular.one_number_one_city import BINARY, REGRESSION

SEVERAL = LabelPlan(column="y", problem_type="multi-class", values="text", classes=("a", "b", "c"))


def batches_of(labels, size=7, **ids):
    return (
        tf.data.Dataset.from_tensor_slices(
            ({key: tf.constant(values, tf.int64) for key, values in ids.items()}, labels)
        )
        .batch(size)
        .prefetch(1)
    )


def test_means_of_numbers_are_shrunk_towards_the_mean_of_all():
    ids = [0] * 60 + [1] * 20 + [2] * 19 + [3] * 21
    labels = np.array([1.0] * 60 + [5.0] * 20 + [100.0] * 19 + [7.0] * 21, np.float32)
    found = label_means(batches_of(labels, city=ids), REGRESSION, ("city",), 4)
    mean = (60 + 100 + 1_900 + 147) / 120
    assert found[:2].tolist() == pytest.approx([(60 + MIN_ROWS * mean) / 80, (100 + MIN_ROWS * mean) / 40])
    assert np.isnan(found[2])  # 19 rows
    assert np.isnan(found[3])  # the last id is that of unknown values


def test_held_out_rows_do_not_count_and_the_second_class_counts_as_one():
    features = {"city": tf.zeros(70, tf.int64), HELD_OUT_KEY: tf.constant([False] * 40 + [True] * 30)}
    labels = tf.constant([1.0] * 40 + [9.0] * 30)
    found = label_means([(features, labels)], REGRESSION, ("city",), 2)
    assert found[0] == 1.0
    labels = np.array([b"yes"] * 30 + [b"no"] * 10 + [b"no"] * 40)
    found = label_means(batches_of(labels, city=[1] * 40 + [0] * 40), BINARY, ("city",), 3)
    assert found[:2].tolist() == pytest.approx([20 * 0.375 / 60, (30 + 20 * 0.375) / 60])
    labels = np.array([2.0, 4.0] * 25, np.float32)
    batches = batches_of(labels, city=[0] * 50, street=[1, 2] * 25, height=[0] * 50)
    found = label_means(batches, REGRESSION, ("city", "street"), 4)
    assert found[:3].tolist() == pytest.approx([3, (50 + 60) / 45, (100 + 60) / 45])


def test_means_are_weighted_but_rows_are_counted():
    labels = np.array([1.0, 5.0] * 30, np.float32)
    batches = batches_of(labels, city=[0] * 60)
    weighted = [({**f, WEIGHT_KEY: tf.where(y > 2, 3.0, 0.5)}, y) for f, y in batches]
    found = label_means(weighted, REGRESSION, ("city",), 2)
    assert found[0] == pytest.approx((0.5 * 1 + 3 * 5) / 3.5)  # that of all rows, too
    few = [({**f, WEIGHT_KEY: tf.fill([len(y)], 9.0)}, y) for f, y in batches_of(labels[:19], city=[0] * 19)]
    assert np.isnan(label_means(few, REGRESSION, ("city",), 2)).all()  # 19 rows
    ids = [0] * 30 + [1] * 30
    doubled = [
        ({**f, WEIGHT_KEY: 1.0 + tf.cast(f["city"] == 0, tf.float32)}, y)
        for f, y in batches_of(labels, city=ids)
    ]
    repeated = batches_of(np.concatenate([labels, labels[:30]]), city=[*ids, *[0] * 30])
    expected = label_means(repeated, REGRESSION, ("city",), 3)
    assert label_means(doubled, REGRESSION, ("city",), 3)[:2] == pytest.approx(expected[:2])


@pytest.mark.parametrize(
    ("label", "keys", "num_ids", "expected"),
    [
        (BINARY, ("city",), 4, True),
        (REGRESSION, ("city",), 4, True),
        (SEVERAL, ("city",), 4, False),
        (BINARY, (), 4, False),
        (BINARY, ("a", "b"), MAX_CONSTANTS // 2, True),
        (BINARY, ("a", "b"), MAX_CONSTANTS // 2 + 1, False),
    ],
)
def test_where_there_are_means(label, keys, num_ids, expected):
    assert has_label_means(label, keys, num_ids) is expected
