"""A premade Estimator trains and evaluates under a `tf.distribute.Strategy`."""

import pytest


@pytest.mark.more
def test_a_distribution_strategy(run_program, caplog):
    names = run_program("mirrored_regressor")
    result = names["spring"].evaluate(names["measurements"], steps=6)
    # SGD's rate is 0.2: the error of weight + bias shrinks to 1 - 0.2 * 2 * 2 = 0.2 of it each step.
    assert result["loss"] < 1e-6
    assert result["prediction/mean"] == pytest.approx(3, abs=1e-3)
    assert set(result) == {"average_loss", "label/mean", "loss", "prediction/mean", "global_step"}
    assert result["global_step"] == 12
    replicas = names["strategy"].num_replicas_in_sync
    # Weight and bias start at 0: a loss of 3 ** 2, which is summed over the replicas.
    assert f"loss = {9.0 * replicas}, step = 0" in caplog.text
