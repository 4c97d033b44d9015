import pytest
from pydantic import ValidationError

from pipelines.config.trainer import TrainerConfig


def test_a_model_is_one_of_four():
    assert TrainerConfig().model == "auto"
    assert TrainerConfig(model="boosted_trees", n_trees=7, max_depth=3).n_trees == 7
    with pytest.raises(ValidationError, match="'auto', 'boosted_trees', 'wide_deep' or 'linear'"):
        TrainerConfig(model="forest")
    with pytest.raises(ValidationError, match="less than or equal to 16"):
        TrainerConfig(max_depth=17)


def test_trees_do_not_grow_in_a_cluster():
    with pytest.raises(ValidationError, match="boosted trees are grown in one process"):
        TrainerConfig(model="boosted_trees", workers=2, ps=1)
    assert TrainerConfig(model="linear", workers=2, ps=1).workers == 2


def test_trees_have_no_steps():
    with pytest.raises(ValidationError, match="train_steps = 50: boosted trees are grown tree by tree"):
        TrainerConfig(model="boosted_trees", train_steps=50)
    with pytest.raises(ValidationError, match="less than or equal to 100000"):
        TrainerConfig(n_trees=2**31 - 1)
