import numpy as np
import pytest

from estimator_core.boosted_trees.settings import BoostingSettings


def test_the_parameters_of_the_library():
    settings = BoostingSettings(
        n_batches_per_layer=3,
        max_depth=4,
        learning_rate=0.3,
        pruning_mode="pre",
        quantile_sketch_epsilon=0.05,
        l1_regularization=0.01,
        l2_regularization=0.02,
        tree_complexity=0.03,
        min_node_weight=0.04,
        min_node_examples=6,
    )
    found = settings.parameters(num_rows=1000, num_columns=7, loss_scale=1.0)
    expected = {"max_depth": 4, "num_leaves": 16, "learning_rate": 0.3, "max_bin": 20, "min_data_in_leaf": 6}
    assert {name: found[name] for name in expected} == expected
    # For each of 1,000 examples.
    assert found["lambda_l1"] == pytest.approx(10)
    assert found["lambda_l2"] == pytest.approx(20)
    assert found["min_gain_to_split"] == pytest.approx(30)
    assert found["min_sum_hessian_in_leaf"] == pytest.approx(40)
    # A loss that is twice that of the library needs half of it.
    assert settings.parameters(1000, 7, loss_scale=2.0)["lambda_l2"] == pytest.approx(10)
    assert settings.steps_per_tree == 12
    assert repr(BoostingSettings(np.ceil(1.5)).steps_per_tree) == "12"  # a float may be a whole number


@pytest.mark.parametrize(
    ("settings", "rows_and_columns", "expected"),
    [
        # Without pruning no gain is asked for.
        ({"tree_complexity": 0.5}, (1000, 7), {"min_gain_to_split": 0}),
        # Deep trees have no more leaves than there are rows.
        ({"max_depth": 20}, (500, 7), {"num_leaves": 500}),
        ({"max_depth": 1}, (500, 7), {"num_leaves": 2}),
        ({}, (1000, 10), {"num_threads": 1}),  # for little data
        ({}, (1_000_000, 10), {"num_threads": 0}),  # as many as there are
    ],
)
def test_parameters_that_depend_on_others(settings, rows_and_columns, expected):
    found = BoostingSettings(1, **settings).parameters(*rows_and_columns, 1.0)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_batches_per_layer": 0}, "n_batches_per_layer must be a whole number above 0"),
        ({"max_depth": 2.5}, "Received: max_depth=2.5"),
        ({"n_batches_per_layer": None}, "Received: n_batches_per_layer=None"),
        ({"n_trees": True}, "Received: n_trees=True"),
        ({"min_node_examples": 0}, "min_node_examples must be a whole number above 0"),
        ({"l2_regularization": -1.0}, "Received: l2_regularization=-1.0"),
        ({"min_node_weight": float("nan")}, "Received: min_node_weight=nan"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"quantile_sketch_epsilon": 1.0}, "between 0 and 1"),
        ({"pruning_mode": "prae"}, "must be one of"),
        ({"pruning_mode": "pre"}, "tree_complexity must be positive"),
        ({"pruning_mode": "post", "tree_complexity": 0.1}, "use pruning_mode='pre'"),
    ],
)
def test_values_that_can_not_work(changes, message):
    with pytest.raises(ValueError, match=message):
        BoostingSettings(**{"n_batches_per_layer": 1, **changes})
