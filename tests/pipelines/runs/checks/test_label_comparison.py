import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from tfx.types.standard_artifacts import Examples

from pipelines.data.formats.number_format import POINT
from pipelines.runs.checks.label_comparison import chi_square, compare_labels, kolmogorov_smirnov, read_labels


def test_chi_square_is_that_of_scipy_and_rare_classes_count_as_one():
    table = np.array([[120.0, 90, 40], [50, 70, 30]])
    statistic, p_value = chi_square(table)
    expected = scipy.stats.chi2_contingency(table, correction=False)
    assert (statistic, p_value) == pytest.approx((expected.statistic, expected.pvalue))
    table = np.array([[100.0, 2, 1, 3, 80], [50, 2, 2, 1, 45]])
    together = np.array([[100.0, 80, 6], [50, 45, 5]])
    assert chi_square(table)[0] == pytest.approx(
        scipy.stats.chi2_contingency(together, correction=False).statistic
    )
    assert chi_square(np.array([[3.0, 1], [2, 1]])) == (0.0, 1.0)  # all of them are rare


def test_kolmogorov_smirnov_is_that_of_scipy():
    draw = np.random.default_rng(1)
    for shift in (0.0, 0.2):
        first, second = draw.normal(size=700), draw.normal(shift, size=400)
        distance, p_value = kolmogorov_smirnov(first, second)
        expected = scipy.stats.ks_2samp(first, second, method="asymp")
        assert distance == pytest.approx(expected.statistic)
        assert p_value == pytest.approx(expected.pvalue, rel=0.25)  # scipy corrects small samples
    assert kolmogorov_smirnov(np.arange(50.0), np.arange(50.0)) == (0.0, 1.0)


def test_a_difference_is_significant_when_it_is_large_and_no_chance():
    equal = compare_labels({"train": [0] * 400 + [1] * 200, "eval": [0] * 205 + [1] * 95})
    assert not equal.is_significant
    assert equal.shares["eval"]["1"] == pytest.approx(95 / 300)
    assert equal.sizes == {"train": 600, "eval": 300}
    other = compare_labels({"train": ["a"] * 590 + ["b"] * 10, "eval": ["a"] * 100 + ["b"] * 200})
    assert other.is_significant
    assert other.distance == pytest.approx(200 / 300 - 10 / 600)
    said = other.describe("y")
    assert said.startswith("'a' is 98.3% of the labels 'y' in train and 33.3% in eval (chi-square")
    ids = compare_labels({"train": [1_000_001] * 500 + [1_000_002] * 9, "eval": [1_000_002] * 250})
    assert ids.shares["train"] == {"1000001": 500 / 509, "1000002": 9 / 509}
    assert ids.is_significant
    tiny = compare_labels({"train": [0] * 500_000 + [1] * 500_000, "eval": [0] * 504_000 + [1] * 496_000})
    assert (tiny.p_value < 1e-6, tiny.is_significant) == (True, False)  # 0.4 % of the rows


def test_numbers_are_compared_as_numbers():
    draw = np.random.default_rng(2)
    found = compare_labels({"train": draw.normal(5, 1, 900), "eval": draw.normal(7, 1, 500)})
    assert (found.test, found.is_significant) == ("Kolmogorov-Smirnov", True)
    assert found.shares["train"]["50 %"] == pytest.approx(5, abs=0.2)
    assert "the median of 'y' is" in found.describe("y")
    assert found.as_record("y")["sizes"] == {"train": 900, "eval": 500}
    assert compare_labels({"train": np.arange(5.0), "eval": np.empty(0)}) is None


def test_labels_are_read_from_the_examples(tmp_path):
    examples = Examples()
    # The split `test` is not read: it has no files.
    examples.uri, examples.split_names = str(tmp_path), '["train", "eval", "test"]'
    cells = {"train": [b" $1,200.50 ", b""], "eval": [b"3", b"free"]}
    for split, values in cells.items():
        (tmp_path / f"Split-{split}").mkdir()
        with tf.io.TFRecordWriter(str(tmp_path / f"Split-{split}" / "a.gz"), "GZIP") as writer:
            for value in (None, *values):
                listed = tf.train.BytesList(value=[] if value is None else [value])
                features = {"y": tf.train.Feature(bytes_list=listed)} if value else {}
                writer.write(
                    tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
                )
    assert {name: list(part) for name, part in read_labels(examples, "y").items()} == {
        "train": ["$1,200.50"], "eval": ["3", "free"],
    }  # fmt: skip
    numbers = read_labels(examples, "y", number_format=POINT)
    assert {name: list(part) for name, part in numbers.items()} == {"train": [1200.5], "eval": [3]}
