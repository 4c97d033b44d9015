import pytest
import tensorflow as tf

from estimator_core.heads.loss_reduction import LossReduction, check_loss_reduction, reduce_loss

LOSSES = tf.constant([[1.0], [2.0], [4.0]])
WEIGHTS = tf.constant([[2.0], [0.0], [0.5]])
# Weighted, the losses are 2, 0 and 2.
REDUCED = {
    "sum": 4.0,
    "weighted_sum": 4.0,
    "sum_over_batch_size": 4.0 / 3,
    "weighted_sum_over_batch_size": 4.0 / 3,
    "weighted_mean": 4.0 / 2.5,
    "weighted_sum_by_nonzero_weights": 4.0 / 2,
}


def test_all_reductions_are_known():
    assert set(LossReduction.ALL) == set(REDUCED)
    assert [check_loss_reduction(one) for one in LossReduction.ALL] == list(LossReduction.ALL)
    assert {one for one in REDUCED if one in LossReduction.SUMS} == {"sum", "weighted_sum"}


@pytest.mark.parametrize(("reduction", "expected"), REDUCED.items())
def test_of_weighted_losses_to_which_regularization_is_added(reduction, expected):
    assert reduce_loss(LOSSES, WEIGHTS, reduction).numpy() == pytest.approx(expected)
    assert reduce_loss(tf.zeros([0, 1]), 1.0, reduction, [tf.constant(0.25)]).numpy() == 0.25  # no rows
    loss = reduce_loss(LOSSES, WEIGHTS, reduction, [tf.constant(0.25), tf.constant(0.5)])
    assert loss.numpy() == pytest.approx(expected + 0.75)


def test_without_weights_all_means_are_one_and_with_no_weight_at_all_there_is_no_loss():
    for reduction in LossReduction.MEANS:
        assert reduce_loss(LOSSES, 1.0, reduction).numpy() == pytest.approx(7.0 / 3)
    for reduction in ("weighted_mean", "weighted_sum_by_nonzero_weights"):
        assert reduce_loss(LOSSES, tf.zeros([3, 1]), reduction).numpy() == 0.0


@pytest.mark.parametrize(
    ("reduction", "expected"),
    # Weighted: 2, 6, 1 and 1. The weights count once for each of the two losses of an example.
    [("weighted_mean", 2.0), ("weighted_sum_by_nonzero_weights", 10 / 4), ("sum_over_batch_size", 10 / 4)],
)
def test_several_losses_of_an_example_share_its_weight(reduction, expected):
    losses = tf.constant([[1.0, 3.0], [2.0, 2.0]])
    weights = tf.constant([[2.0], [0.5]])
    assert reduce_loss(losses, weights, reduction).numpy() == pytest.approx(expected)


@pytest.mark.parametrize("reduction", ["none", "mean", None])
def test_unknown_reductions_are_refused(reduction):
    with pytest.raises(ValueError, match=f"loss_reduction={reduction!r}"):
        check_loss_reduction(reduction)
