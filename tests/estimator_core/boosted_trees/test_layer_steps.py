import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.boosted_trees.model_fn import LayerSteps, select_for_trees
from estimator_core.execution.single_device import SingleDevice

CLUSTER = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}


def test_training_makes_many_steps_in_a_call():
    found = select_for_trees(est.RunConfig(), est.ModeKeys.TRAIN, 60)
    assert isinstance(found, LayerSteps)
    assert found.steps_per_session_run == 60
    assert type(select_for_trees(est.RunConfig(), est.ModeKeys.EVAL, 60)) is SingleDevice


def test_a_strategy_is_refused():
    config = est.RunConfig(
        train_distribute=tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]),
        eval_distribute=tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]),
    )
    for mode in (est.ModeKeys.TRAIN, est.ModeKeys.EVAL):
        with pytest.raises(ValueError, match="leave train_distribute and eval_distribute out"):
            select_for_trees(config, mode, 60)
    assert select_for_trees(config, est.ModeKeys.PREDICT, 60)


def test_a_cluster_is_refused(monkeypatch):
    task = '"task": {"type": "worker", "index": 0}'
    cluster = str(CLUSTER).replace("'", '"')
    monkeypatch.setenv("TF_CONFIG", f'{{"cluster": {cluster}, {task}}}')
    with pytest.raises(ValueError, match="unset TF_CONFIG"):
        select_for_trees(est.RunConfig(), est.ModeKeys.TRAIN, 60)
