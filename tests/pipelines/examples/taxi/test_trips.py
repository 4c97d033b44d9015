"""The trips that are drawn: their labels and probabilities are honest."""

import numpy as np
import pytest

from pipelines.examples.taxi import trips


def test_labels_survive_float32_arithmetic():
    block = next(iter(trips.generate(trips.BLOCK_ROWS, seed=5)))
    fare, tips = (block.columns[name].astype(np.float32) for name in ("fare", "tips"))
    np.testing.assert_array_equal(tips > fare * np.float32(0.2), block.good_tip)


def test_true_probability_is_calibrated():
    blocks = list(trips.generate(10 * trips.BLOCK_ROWS, seed=6))
    probability = np.concatenate([block.true_probability for block in blocks])
    label = np.concatenate([block.good_tip for block in blocks])
    tenth = np.minimum((probability * 10).astype(int), 9)
    for number in range(10):
        rows = tenth == number
        # Five standard errors of a mean of independent draws.
        error = 5 * np.sqrt((probability[rows] * (1 - probability[rows])).sum()) / rows.sum()
        assert abs(label[rows].mean() - probability[rows].mean()) < error


def test_blocks_hold_the_rows_that_are_asked_for_and_arguments_are_checked():
    blocks = list(trips.generate(trips.BLOCK_ROWS + 3, seed=2))
    assert [len(block.good_tip) for block in blocks] == [trips.BLOCK_ROWS, 3]
    for block in blocks:
        assert tuple(block.columns) == trips.COLUMNS
        assert {len(column) for column in block.columns.values()} == {len(block.good_tip)}
    with pytest.raises(ValueError, match="rows=0"):
        trips.generate(0, seed=1)
    with pytest.raises(ValueError, match="seed=-1"):
        trips.generate(1, seed=-1)


@pytest.mark.parametrize("choices", [trips.PAYMENT_TYPES, [(*area[:2], 0) for area in trips.AREAS]])
def test_shares_add_up_to_one(choices):
    assert sum(share for _, share, _ in choices) == pytest.approx(1)
