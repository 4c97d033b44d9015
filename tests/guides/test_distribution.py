"""The guide's program for a `tf.distribute.Strategy` gives what the guide shows."""

import pytest


def test_a_distribution_strategy(run_program, caplog):
    names = run_program("distribute")
    result = names["regressor"].evaluate(names["input_fn"], steps=10)
    # Weight and bias start at 0: a loss of 1.
    assert result["loss"] < 1e-6
    assert result["prediction/mean"] == pytest.approx(1, abs=1e-3)
    assert set(result) == {"average_loss", "label/mean", "loss", "prediction/mean", "global_step"}
    assert result["global_step"] == 10
    replicas = names["mirrored_strategy"].num_replicas_in_sync
    assert f"loss = {replicas}.0, step = 0" in caplog.text  # summed over the replicas
