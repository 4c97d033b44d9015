import numpy as np
import pytest
import tensorflow as tf

from pipelines.tabular.inputs import HELD_OUT_KEY
from pipelines.tabular.label_means import FOLDS, SHRINKAGE, TextMeans, has_text_means
from pipelines.tabular.plan import WEIGHT_KEY, LabelPlan, TextFeature
from tests.pipelines.tabular.one_number_one_city import BINARY, REGRESSION, make_plan

SEVERAL = LabelPlan(column="y", problem_type="multi-class", values="text", classes=("a", "b", "c"))


def plan_for(label, hash_buckets=4):
    text = (TextFeature(column="note", hash_buckets=hash_buckets),)
    return make_plan(label).model_copy(update={"text": text})


def batches_of(texts, labels, size, **more):
    """Returns batches of ragged lists of word ids."""
    rows = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(texts, tf.int64), labels, more))
    batched = rows.ragged_batch(size) if hasattr(rows, "ragged_batch") else rows.batch(size)
    return [({"text_0": words.to_sparse(), **others}, label) for words, label, others in batched]


def test_means_of_words_are_those_of_their_rows_less_that_of_all_shrunk():
    texts = [[0, 1]] * 10 + [[0]] * 20 + [[]] * 10
    labels = np.array([9.0] * 10 + [3.0] * 20 + [0.0] * 10, np.float32)
    (table,) = TextMeans(batches_of(texts, labels, 7), plan_for(REGRESSION)).of_words
    mean = 150 / 40
    expected = [(150 - 30 * mean) / (30 + SHRINKAGE), (90 - 10 * mean) / (10 + SHRINKAGE), 0, 0]
    assert table.ravel().tolist() == pytest.approx(expected)


@pytest.mark.parametrize("label", [REGRESSION, SEVERAL])
def test_a_text_of_weight_2_is_two_texts(label):
    texts = [[0, 1], [0], [2, 1], []] * 5
    labels = np.array([9.0, 3.0, 0.0, 1.0] * 5, np.float32)
    if label is SEVERAL:
        labels = np.array([b"a", b"b", b"c", b"a"] * 5)
    weights = np.array([1.0, 2.0] * 10)
    (found,) = TextMeans(batches_of(texts, labels, 7, **{WEIGHT_KEY: weights}), plan_for(label)).of_words
    copies = [*texts, *texts[1::2]], np.concatenate([labels, labels[1::2]])
    (expected,) = TextMeans(batches_of(*copies, 7), plan_for(label)).of_words
    assert found == pytest.approx(expected, abs=1e-6)
    assert np.abs(found).max() > 0.01


def test_a_row_gets_its_mean_from_the_other_folds_alone():
    """Row 0 alone has word 1: no other row tells anything about it."""
    texts = [[1]] + [[0]] * 9
    labels = np.array([500.0] + [1.0] * 4 + [3.0] * 5, np.float32)
    found = TextMeans(batches_of(texts, labels, 4), plan_for(REGRESSION))
    means = found.of_rows["text_mean_0"].ravel()
    assert means[0] == 0.0
    assert found.of_words[0][1, 0] > 10
    for row in range(1, 10):
        others = [labels[at] for at in range(10) if at % FOLDS != row % FOLDS]
        with_word = [labels[at] for at in range(1, 10) if at % FOLDS != row % FOLDS]
        mean = np.mean(others)
        expected = (sum(with_word) - len(with_word) * mean) / (len(with_word) + SHRINKAGE)
        assert means[row] == pytest.approx(expected)


def test_held_out_rows_teach_nothing_and_get_what_serving_gives():
    texts = [[0], [2]] * 10 + [[0, 1]] * 5
    labels = np.array([2.0, 4.0] * 10 + [900.0] * 5, np.float32)
    marks = np.array([False] * 19 + [True] * 6)
    batches = batches_of(texts, labels, 8, **{HELD_OUT_KEY: marks})
    found = TextMeans(batches, plan_for(REGRESSION))
    assert found.of_words[0][1, 0] == 0.0
    served = np.concatenate([found.with_text_means(one)["text_mean_0"] for one, _ in batches])
    assert found.of_rows["text_mean_0"][19:].tolist() == served[19:].tolist()
    assert found.of_rows["text_mean_0"][:19].tolist() != served[:19].tolist()


@pytest.mark.parametrize(("label", "count"), [(REGRESSION, 1), (BINARY, 1), (SEVERAL, 3)])
def test_serving_takes_the_sum_over_the_root_of_the_number_of_words(label, count):
    random = np.random.default_rng(3)
    texts = [random.integers(0, 4, random.integers(0, 6)).tolist() for _ in range(60)]
    names = [name.encode() for name in label.classes]
    labels = random.choice(names, 60) if names else random.normal(size=60).astype(np.float32)
    found = TextMeans(batches_of(texts, labels, 25), plan_for(label))
    table = found.of_words[0]
    assert table.shape == (4, count)
    (features, _), *_ = batches_of(texts, labels, 60)
    served = found.with_text_means(features)["text_mean_0"].numpy()
    for text, row in zip(texts, served, strict=True):
        expected = table[text].sum(axis=0) / np.sqrt(max(len(text), 1))
        assert row.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_the_second_of_two_classes_counts_as_one_and_each_of_several():
    texts = [[0]] * 30 + [[1]] * 30
    two = np.array([b"yes"] * 30 + [b"no"] * 30)
    (table,) = TextMeans(batches_of(texts, two, 60), plan_for(BINARY)).of_words
    assert table[:2].ravel().tolist() == pytest.approx([15 / 50, -15 / 50])
    three = np.array([b"c"] * 30 + [b"a"] * 30)
    (table,) = TextMeans(batches_of(texts, three, 60), plan_for(SEVERAL)).of_words
    assert table[0].tolist() == pytest.approx([-15 / 50, 0, 15 / 50])


def test_too_many_means_are_left_out():
    many = tuple(f"class {number}" for number in range(81))
    assert has_text_means(plan_for(BINARY, 50_000))
    assert not has_text_means(make_plan(BINARY))
    label = LabelPlan(column="y", problem_type="multi-class", values="text", classes=many)
    assert not has_text_means(plan_for(label, 50_000))  # 4,050,000 constants
