import pytest

from estimator_core.optimizers.named import optimizer_named


def test_a_known_name():
    assert optimizer_named("SGD", {"Adam": int, "SGD": float}) is float


def test_an_unknown_name_lists_all_the_nearest_first():
    choices = {"Adagrad": 1, "Adam": 2, "Ftrl": 3, "SGD": 4}
    with pytest.raises(
        ValueError, match=r"one of \['Adam', 'Adagrad', .*Received: optimizer='adam'"
    ) as error:
        optimizer_named("adam", choices)
    assert "one of ['Adam', 'Adagrad', " in str(error.value)
    assert all(repr(name) in str(error.value) for name in choices)
