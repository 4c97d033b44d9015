import numpy as np
import pytest
import tensorflow as tf

import estimator_core
from pipelines.tabular.estimators import build_estimator
from tests.pipelines.tabular.one_number_one_city import BINARY, REGRESSION, FakeTransform, make_plan


def build(model, tmp_path, label=BINARY, **changes):
    return build_estimator(model, make_plan(label, **changes), FakeTransform(tf.string), str(tmp_path))


@pytest.mark.parametrize(
    ("model", "changes", "steps"),
    [
        ("wide_deep", {"train_steps": 2_500}, 500),  # a fifth
        ("wide_deep", {}, 100),
        ("linear", {"train_steps": 40_000, "early_stopping": True}, 1_000),
        ("linear", {"train_steps": 3_200, "early_stopping": True}, 100),  # a 32nd
    ],
)
def test_checkpoints_come_so_often(tmp_path, model, changes, steps):
    assert build(model, tmp_path, **changes).config.save_checkpoints_steps == steps


def test_summaries_of_trees_are_a_sixteenth_of_the_trees_apart(tmp_path):
    config = build("boosted_trees", tmp_path, trees={"max_depth": 5, "num_batches": 2}).config
    assert config.save_summary_steps == config.log_step_count_steps == 25 * 5 * 2  # of 400 trees
    assert config.save_checkpoints_steps is None
    assert build("boosted_trees", tmp_path, trees={"n_trees": 30}).config.save_summary_steps == 60
    # A larger limit changes nothing: slower trees need more of them.
    for learning_rate, trees in ((0.1, 25), (0.05, 50)):
        many = {"n_trees": 2_000, "learning_rate": learning_rate}
        config = build("boosted_trees", tmp_path, trees=many).config
        assert config.save_summary_steps == trees * 6


def test_the_seed_and_the_settings_are_the_plans(tmp_path):
    assert build("linear", tmp_path, seed=9).config.tf_random_seed == 9
    trees = build(
        "boosted_trees",
        tmp_path,
        seed=9,
        trees={
            "n_trees": 7,
            "max_depth": 3,
            "learning_rate": 0.2,
            "min_node_weight": 0.25,
            "min_node_examples": 5,
            "l2_regularization": 0.5,
            "num_batches": 4,
        },
    )
    assert trees.config.tf_random_seed == 9
    settings = trees._settings
    assert (settings.n_trees, settings.max_depth, settings.n_batches_per_layer) == (7, 3, 4)
    assert (settings.learning_rate, settings.min_node_weight) == (0.2, 0.25)
    assert settings.min_node_examples == 5
    assert (settings.l2_regularization, settings.center_bias) == (0.5, True)


@pytest.mark.more
@pytest.mark.parametrize("model", ["boosted_trees", "wide_deep", "linear"])
def test_a_regressor_answers_in_the_units_of_the_label(tmp_path, model):
    """The label is 1,000 + 100 * x; its mean and standard deviation are those of the plan."""
    estimator = build(model, tmp_path, REGRESSION, trees={"num_batches": 1})
    x = np.random.default_rng(1).uniform(-2, 2, [256, 1]).astype(np.float32)
    features = {
        "numeric": x,
        "numeric_bucket": (x > 0).astype(np.int64),
        "category_0": np.zeros(256, np.int64),
    }

    def input_fn():
        data = tf.data.Dataset.from_tensors((features, 1_000 + 100 * x[:, 0]))
        return data if model == "boosted_trees" else data.repeat()

    estimator.train(input_fn, max_steps=240)
    metrics = estimator.evaluate(input_fn, steps=1)
    assert metrics["average_loss"] < 0.02 * 13_333  # a constant has 100**2 * 4**2 / 12
    assert metrics["label/mean"] == pytest.approx(1_000, abs=30)
    assert isinstance(estimator, estimator_core.Estimator)
