import pytest
from pydantic import ValidationError

from pipelines.tabular.plan import (
    PLAN_KEY,
    CategoricalFeature,
    FeaturePlan,
    LabelPlan,
    NumericFeature,
    TabularPlan,
    TextFeature,
    TrainingPlan,
    TreesPlan,
)

PLAN = TabularPlan(
    label=LabelPlan(column="tip", problem_type="multi-class", values="text", classes=("a", "b", "c")),
    numeric=(NumericFeature(column="miles", center=2.5, has_missing=True),),
    categorical=(
        CategoricalFeature(column="city", num_values=7),
        CategoricalFeature(column="driver", num_values=9_000, hash_buckets=10_000),
    ),
    num_buckets=10,
    ignored={"id": "numbers the rows"},
    slices=("city",),
    training=TrainingPlan(
        batch_size=64, train_steps=900, eval_steps=None, hidden_units=(16, 8), learning_rate=0.003,
        linear_learning_rate=0.02, dropout=0.1, seed=5,
    ),
)  # fmt: skip


def test_the_parts_of_a_plan_survive_the_way_through_json_unless_they_are_of_another_version():
    import json

    whole = json.loads(json.dumps(PLAN.training_config()))
    assert TabularPlan.from_custom_config(whole) == PLAN
    part = json.loads(json.dumps(PLAN.feature_config()))
    assert set(part[PLAN_KEY]) == set(FeaturePlan.model_fields)
    assert {"label", "numeric", "group"} < set(part[PLAN_KEY])
    assert FeaturePlan.from_custom_config(part).categorical == PLAN.categorical
    training = PLAN.training.model_copy(update={"train_steps": 1})
    other = PLAN.model_copy(update={"training": training, "ignored": {}, "slices": ()})
    assert other.feature_config() == PLAN.feature_config()
    assert other.training_config() != PLAN.training_config()
    config = PLAN.training_config()
    config[PLAN_KEY]["new"] = 1
    with pytest.raises(ValidationError, match="new"):
        TabularPlan.from_custom_config(config)


def test_the_notes_name_the_problem_and_each_column_that_is_not_used():
    assert PLAN.notes() == [
        "multi-class problem: 'tip' with 3 classes from 1 numeric and 2 categorical features",
        "model: wide_deep (900 steps of 64 at most)",
        "column 'id' is not used: numbers the rows",
    ]
    regression = LabelPlan(column="fare", problem_type="regression", values="number")
    assert (
        PLAN.model_copy(update={"label": regression})
        .notes()[0]
        .startswith("regression problem: 'fare' from 1 numeric")
    )


@pytest.mark.parametrize(
    ("num", "words"), [(1, "features and 1 column of text"), (2, "features and 2 columns of text")]
)
def test_columns_of_text_agree_with_their_count(num, words):
    text = (TextFeature(column="review", hash_buckets=10, has_pairs=False),) * num
    assert PLAN.model_copy(update={"text": text}).notes()[0].endswith(words)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("boosted_trees", "model: boosted_trees (30 trees at most)"),
        ("linear", "model: linear (900 steps of 64 at most)"),
        (
            "auto",
            "model: the best of boosted_trees, wide_deep, linear, or an ensemble of them, on held-out "
            "training rows (30 trees, 900 steps of 64 at most)",
        ),
    ],
)
def test_the_notes_name_the_model(model, words):
    training = PLAN.training.model_copy(
        update={"model": model, "trees": TreesPlan(n_trees=30, max_depth=4, num_batches=3)}
    )
    assert PLAN.model_copy(update={"training": training}).notes()[1] == words
    assert training.max_steps("boosted_trees") == 30 * 4 * 3
    assert training.max_steps("linear") == 900
