"""The one place that chooses how a mode runs."""

import json

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync


@pytest.mark.parametrize("mode", ["train", "eval", "infer"])
def test_without_a_word_it_is_one_device(mode):
    assert type(select_execution(est.RunConfig(), mode)) is SingleDevice


def test_each_mode_has_its_own_strategy():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:1")
    for mode, name in (("train", "train_distribute"), ("eval", "eval_distribute")):
        config = est.RunConfig(**{name: strategy})
        kinds = {m: type(select_execution(config, m)) for m in ("train", "eval", "infer")}
        assert kinds.pop(mode) is ReplicasInSync
        assert set(kinds.values()) == {SingleDevice}
        assert select_execution(config, mode).strategy is strategy


def test_a_cluster_is_refused_for_training_alone(monkeypatch):
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    config = est.RunConfig()
    with pytest.raises(ValueError, match="TF_CONFIG describes a cluster") as error:
        select_execution(config, "train")
    assert "localhost:2" in str(error.value)
    assert type(select_execution(config, "eval")) is SingleDevice
