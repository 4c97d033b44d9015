import json

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tpu


class Resolver:
    """A stand-in for TPUClusterResolver."""

    def master(self):
        return "grpc://tpu:8470"

    def cluster_spec(self):
        return tf.train.ClusterSpec({"worker": ["tpu:8470"]})


def test_has_the_settings_of_run_config():
    config = tpu.RunConfig(tpu.TPUConfig(7), model_dir="model", save_checkpoints_steps=5)
    assert isinstance(config, est.RunConfig)
    assert (config.tpu_config.iterations_per_loop, config.model_dir) == (7, "model")
    assert config.save_checkpoints_steps == 5
    assert (config.master, config.evaluation_master, config.cluster) == ("", "", None)
    by_position = tpu.RunConfig(None, "b", "a")
    assert (by_position.master, by_position.evaluation_master) == ("a", "b")


def test_an_unknown_setting_is_refused():
    with pytest.raises(TypeError, match="nope"):
        tpu.RunConfig(nope=1)


def test_a_cluster_gives_the_masters_and_the_session_config():
    resolver = Resolver()
    config = tpu.RunConfig(cluster=resolver)
    assert config.cluster is resolver
    assert config.master == config.evaluation_master == "grpc://tpu:8470"
    assert config.cluster_spec.as_dict() == {"worker": ["tpu:8470"]}
    assert config.session_config.isolate_session_state
    assert config.session_config.cluster_def.job[0].name == "worker"
    with pytest.raises(ValueError, match="Both master and cluster"):
        tpu.RunConfig(master="a", cluster=resolver)
    given = tf.compat.v1.ConfigProto(log_device_placement=True)
    config = tpu.RunConfig(cluster=Resolver(), session_config=given)
    assert config.session_config.log_device_placement
    assert config.session_config.cluster_def.job[0].name == "worker"


def test_replace_keeps_what_is_the_tpus():
    resolver = Resolver()
    config = tpu.RunConfig(tpu.TPUConfig(7), evaluation_master="b", cluster=resolver)
    changed = config.replace(model_dir="model", save_checkpoints_steps=5)
    assert type(changed) is tpu.RunConfig
    assert changed.tpu_config == tpu.TPUConfig(7)
    assert (changed.cluster, changed.evaluation_master) == (resolver, "b")
    assert (changed.model_dir, changed.save_checkpoints_secs) == ("model", None)
    assert config.replace(tpu_config=tpu.TPUConfig(8)).tpu_config.iterations_per_loop == 8


@pytest.mark.parametrize("name", ["master", "evaluation_master", "cluster"])
def test_replace_of_an_address(name):
    with pytest.raises(ValueError, match=name):
        tpu.RunConfig().replace(**{name: "a"})


def test_configs_that_differ_in_the_tpu_only_are_not_equal():
    assert tpu.RunConfig(tpu.TPUConfig(7)) != tpu.RunConfig(tpu.TPUConfig(8))
    assert "iterations_per_loop=7" in repr(tpu.RunConfig(tpu.TPUConfig(7)))


_CLUSTER = {"chief": ["a:1"], "worker": ["b:1"]}
_EVALUATOR = {"cluster": {"chief": ["c:1"]}, "task": {"type": "evaluator", "index": 0}}


# The values are those of tf.estimator 2.15.
@pytest.mark.parametrize(
    ("value", "arguments", "masters"),
    [
        ({}, {"master": "a"}, ("a", "a")),
                ({"session_master": "s"}, {}, ("s", "s")),
        ({"eval_session_master": "e"}, {}, ("", "e")),
        ({"eval_session_master": "e"}, {"master": "a"}, ("a", "e")),
        ({"eval_session_master": "e"}, {"master": "a", "evaluation_master": ""}, ("a", "")),
        (_EVALUATOR, {"master": "a"}, ("a", "")),
    ],
)  # fmt: skip
def test_masters_of_arguments_and_tf_config(monkeypatch, value, arguments, masters):
    monkeypatch.setenv("TF_CONFIG", json.dumps(value))
    config = tpu.RunConfig(**arguments)
    assert (config.master, config.evaluation_master) == masters


def test_cluster_of_tf_config(as_task):
    as_task("chief", tasks=_CLUSTER)
    config = tpu.RunConfig()
    assert config.cluster is None
    assert config.is_distributed
    assert config.master == "grpc://a:1"
