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
def test_of_weighted_losses(reduction, expected):
    assert reduce_loss(LOSSES, WEIGHTS, reduction).numpy() == pytest.approx(expected)


@pytest.mark.parametrize(("reduction", "expected"), REDUCED.items())
def test_regularization_is_added_as_it_is(reduction, expected):
    regularization = [tf.constant(0.25), tf.constant(0.5)]
    loss = reduce_loss(LOSSES, WEIGHTS, reduction, regularization)
    assert loss.numpy() == pytest.approx(expected + 0.75)


@pytest.mark.parametrize("reduction", LossReduction.MEANS)
def test_without_weights_all_means_are_one(reduction):
    assert reduce_loss(LOSSES, 1.0, reduction).numpy() == pytest.approx(7.0 / 3)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    # Weighted: 2, 6, 1 and 1. The weights count once for each of the two losses of an example.
    [
        ("weighted_mean", 10.0 / 5.0),
        ("weighted_sum_by_nonzero_weights", 10.0 / 4),
        ("sum_over_batch_size", 10.0 / 4),
    ],
)
def test_several_losses_of_an_example_share_its_weight(reduction, expected):
    losses = tf.constant([[1.0, 3.0], [2.0, 2.0]])
    weights = tf.constant([[2.0], [0.5]])
    assert reduce_loss(losses, weights, reduction).numpy() == pytest.approx(expected)


@pytest.mark.parametrize("reduction", ["weighted_mean", "weighted_sum_by_nonzero_weights"])
def test_a_batch_without_any_weight_has_no_loss(reduction):
    assert reduce_loss(LOSSES, tf.zeros([3, 1]), reduction).numpy() == 0.0


@pytest.mark.parametrize("reduction", ["none", "mean", None])
def test_unknown_reductions_are_refused(reduction):
    with pytest.raises(ValueError, match=f"loss_reduction={reduction!r}"):
        check_loss_reduction(reduction)


@pytest.mark.parametrize("reduction", LossReduction.ALL)
def test_a_batch_without_rows_has_no_loss(reduction):
    assert reduce_loss(tf.zeros([0, 1]), 1.0, reduction, [tf.constant(0.25)]).numpy() == 0.25
