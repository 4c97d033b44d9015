import json
import pathlib
import re
import types
from unittest import mock

import pytest
import tensorflow as tf

import estimator_core as est

_CLUSTER = {"chief": ["c:1"], "worker": ["w:1", "w:2"], "ps": ["p:1"]}


def test_defaults_are_those_of_tf_estimator():
    config = est.RunConfig()
    assert (config.save_summary_steps, config.log_step_count_steps) == (100, 100)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, 600)
    assert (config.keep_checkpoint_max, config.keep_checkpoint_every_n_hours) == (5, 10000)
    assert config.session_creation_timeout_secs == 7200
    assert config.checkpoint_save_graph_def is True
    assert config.session_config is None
    assert (config.steps_per_session_run, config.jit_compile) == ("auto", False)
    assert (config.task_type, config.task_id, config.is_chief, config.master) == ("worker", 0, True, "")
    assert (config.num_ps_replicas, config.num_worker_replicas) == (0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("steps_per_session_run", steps) for steps in ("auto", 1, 25)),
        *(("jit_compile", value) for value in ("auto", True, False)),
        ("keep_checkpoint_every_n_hours", None),
        ("device_fn", lambda op, /: "/cpu:0"),
    ],
)
def test_good_values_are_kept(name, value):
    assert getattr(est.RunConfig(**{name: value}).replace(tf_random_seed=3), name) == value


def test_one_checkpoint_interval_replaces_the_other():
    config = est.RunConfig(save_checkpoints_steps=10)
    assert config.save_checkpoints_secs is None
    config = config.replace(save_checkpoints_secs=5)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, 5)
    assert config.replace(tf_random_seed=3).save_checkpoints_secs == 5
    with pytest.raises(ValueError, match="cannot both be set"):
        est.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1)


def test_replace_returns_a_changed_copy():
    config = est.RunConfig(model_dir="a")
    assert config.replace(model_dir="b").model_dir == "b"
    assert config.replace(jit_compile=True).replace(jit_compile=False).jit_compile is False
    assert config.model_dir == "a"
    with pytest.raises(ValueError, match="no setting 'modeldir'"):
        config.replace(modeldir="b")


MESSAGES = {
    "keep_checkpoint_every_n_hours": "keep_checkpoint_every_n_hours must be above 0",
    "steps_per_session_run": r"'auto' or a whole number of 1 or more. Received: ",
    "jit_compile": r"jit_compile must be 'auto', True or False\. Received",
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"save_summary_steps": -1},
        {"keep_checkpoint_max": -1},
        {"model_dir": ""},
        {"keep_checkpoint_every_n_hours": 0},
        {"tf_random_seed": 1.5},
        {"session_config": 1},
        {"device_fn": "cpu"},
        {"device_fn": lambda operation: "/cpu:0"},
        {"device_fn": lambda op, other: "/cpu:0"},
        *({"steps_per_session_run": steps} for steps in (0, -3, 2.5, "many", True, None)),
        *({"jit_compile": value} for value in ("yes", 1, None)),
    ],
)
def test_bad_values_are_named(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=MESSAGES.get(name, name)):
        est.RunConfig(**arguments)


@pytest.mark.parametrize(
    ("task", "is_chief", "rank", "master"),
    [
        (("chief", 0), True, 0, "grpc://c:1"),
        (("worker", 1), False, 2, "grpc://w:2"),
        (("ps", 0), False, 3, "grpc://p:1"),
        (("evaluator", 0), False, None, ""),
    ],
)
def test_tf_config_places_the_task(as_task, task, is_chief, rank, master):
    as_task(*task, _CLUSTER)
    config = est.RunConfig()
    assert (config.task_type, config.task_id) == task
    assert (config.is_chief, config.global_id_in_cluster, config.master) == (is_chief, rank, master)
    if task[0] == "evaluator":  # has no part in the cluster
        assert (config.num_ps_replicas, config.num_worker_replicas) == (0, 0)
        assert config.cluster_spec.as_dict() == {}
    else:
        assert (config.num_ps_replicas, config.num_worker_replicas) == (1, 3)
        assert config.cluster_spec.as_dict() == _CLUSTER


@pytest.mark.parametrize("kind", ["train_distribute", "experimental_distribute"])
def test_workers_alone_train_by_a_strategy(as_task, kind):
    workers = {"worker": ["w:1", "w:2"]}
    as_task("worker", 1, workers)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    both = types.SimpleNamespace(train_distribute=strategy, eval_distribute=None, remote_cluster=None)
    config = est.RunConfig(**{kind: strategy if kind == "train_distribute" else both})
    assert (config.task_type, config.num_worker_replicas) == ("worker", 2)
    assert config.cluster_spec.as_dict() == workers
    assert not config.is_chief
    with pytest.raises(ValueError, match="may have only workers with a train_distribute"):
        est.RunConfig(eval_distribute=strategy)


# The other messages are those of `test_cluster`.
@pytest.mark.parametrize(
    ("tasks", "kind", "message"),
    [
        ({"worker": ["w:1"]}, "worker", "'chief'"),
        ({"worker": ["w:1"]}, "evaluator", "'chief'"),
        ({"evaluator": ["e:1"]}, "evaluator", "'chief'"),
        ({"chief": ["a", "b"]}, "chief", "exactly one"),
        ({"chief": "a"}, "chief", "list addresses"),
    ],
)
def test_a_broken_tf_config_says_what_is_wrong(as_task, tasks, kind, message):
    as_task(kind, tasks=tasks)
    with pytest.raises(ValueError, match=message):
        est.RunConfig()


def test_tf_config_may_give_the_model_dir_and_where_sessions_are_opened(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": "there"}))
    assert est.RunConfig().model_dir == "there"
    with pytest.raises(ValueError, match="differs"):
        est.RunConfig(model_dir="elsewhere")
    settings = {"session_master": "grpc://h:1", "eval_session_master": "grpc://h:2"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(settings))
    config = est.RunConfig()
    assert (config.master, config.evaluation_master) == ("grpc://h:1", "grpc://h:2")


@pytest.mark.parametrize("name", ["train_distribute", "eval_distribute"])
def test_a_strategy_for_loops_with_a_coordinator_is_refused(name):
    strategy = mock.Mock(spec=tf.distribute.ParameterServerStrategy)
    with pytest.raises(ValueError, match=rf"{name} can't be a tf\.distribute\.ParameterServerStrategy"):
        est.RunConfig(**{name: strategy})
    both = {"train_distribute": None, "eval_distribute": None, name: strategy}
    with pytest.raises(ValueError, match=f"{name} can't be"):
        est.RunConfig(experimental_distribute=types.SimpleNamespace(**both, remote_cluster=None))


def test_a_remote_cluster_is_refused(tmp_path):
    settings = {"train_distribute": None, "eval_distribute": None, "remote_cluster": {"worker": ["w:1"]}}
    config = est.RunConfig(experimental_distribute=types.SimpleNamespace(**settings))
    with pytest.raises(ValueError, match="remote_cluster"):
        est.Estimator(lambda features: None, tmp_path, config).train(lambda: None)


@pytest.mark.parametrize(
    ("value", "is_in_cluster", "is_distributed"),
    [
        ({}, False, False),
        ({"cluster": _CLUSTER, "task": {"type": "chief", "index": 0}}, True, True),
        ({"cluster": _CLUSTER, "task": {"type": "evaluator", "index": 0}}, True, False),
        ({"cluster": {"chief": ["h:1"]}, "task": {"type": "chief", "index": 0}}, True, False),
        ({"cluster": {"master": ["h:1"]}, "task": {"type": "master", "index": 0}}, True, False),
    ],
)
def test_a_part_in_a_cluster(monkeypatch, value, is_in_cluster, is_distributed):
    monkeypatch.setenv("TF_CONFIG", json.dumps(value))
    config = est.RunConfig(session_creation_timeout_secs=None)
    assert (config.is_in_cluster, config.is_distributed) == (is_in_cluster, is_distributed)
    if not is_distributed and config.task_type != "evaluator":
        assert (config.master, config.is_chief, config.num_worker_replicas) == ("", True, 1)


def test_attributes_of_ones_own_go_along_and_settings_are_read_only():
    config = est.RunConfig(model_dir="a")
    config.hparams = 3
    assert config.replace(model_dir="b").hparams == 3
    assert {config: 1}[config] == 1
    assert config != est.RunConfig(model_dir="a")  # it equals itself only
    config.hparams = 4
    assert config.hparams == 4
    with pytest.raises(AttributeError, match=r"config.replace\(model_dir=...\)"):
        config.model_dir = "b"


def test_replace_keeps_a_subclass_with_its_own_arguments():
    class Config(est.RunConfig):
        def __init__(self, extra, **kwargs):
            super().__init__(**kwargs)
            self.extra = extra

    config = Config("x", save_checkpoints_secs=5).replace(model_dir="b", save_checkpoints_steps=7)
    assert (type(config), config.extra, config.model_dir) == (Config, "x", "b")
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (7, None)
    with pytest.raises(ValueError, match="keep_checkpoint_max"):
        config.replace(keep_checkpoint_max=-1)


def test_a_subclass_may_have_properties_of_the_names_of_settings(make_estimator):
    class Mine(est.RunConfig):
        @property
        def keep_checkpoint_max(self):
            return 2

        @property
        def is_chief(self):
            return True

    config = Mine(keep_checkpoint_max=7, save_summary_steps=3).replace(model_dir="a")
    assert (config.keep_checkpoint_max, config.save_summary_steps) == (2, 3)
    assert type(config) is Mine


def test_a_strategy_is_given_once():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    both = types.SimpleNamespace(train_distribute=strategy, eval_distribute=None)
    assert est.RunConfig(experimental_distribute=both).experimental_distribute is both
    with pytest.raises(ValueError, match="train_distribute is set twice"):
        est.RunConfig(train_distribute=strategy, experimental_distribute=both)


_OF_CHIEF, _OF_WORKER = ["/job:ps", "/job:chief"], ["/job:ps", "/job:worker/task:0"]


# The values are those of tf.estimator 2.15.
@pytest.mark.parametrize(
    ("kind", "filters"),
    [
        ("chief", _OF_CHIEF),
        ("worker", _OF_WORKER),
        ("ps", ["/job:ps", "/job:worker", "/job:chief", "/job:master"]),
        ("evaluator", None),
    ],
)
def test_the_session_config_of_a_task_has_its_device_filters(as_task, kind, filters):
    as_task(kind, tasks={"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]})
    session_config = est.RunConfig().session_config
    assert (session_config and list(session_config.device_filters)) == filters
    assert est.RunConfig().replace(session_config=None).session_config is None
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    assert est.RunConfig(train_distribute=strategy).session_config is None


@pytest.mark.parametrize("name", ["run*", "run?", "run[1]", "run\\1"])
def test_a_model_dir_is_no_pattern(name, tmp_path, monkeypatch):
    model_dir = str(tmp_path / name / "model")
    with pytest.raises(ValueError, match=re.escape(f"must not contain {name[3]}, ")):
        est.RunConfig(model_dir=model_dir)
    with pytest.raises(ValueError, match=re.escape(repr(model_dir))):
        est.LinearRegressor([tf.feature_column.numeric_column("x")], model_dir)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": name}))
    with pytest.raises(ValueError, match=re.escape(f"must not contain {name[3]}")):
        est.RunConfig()


@pytest.mark.parametrize("name", ["a]b", "a{b}", "a:b", "ram://a", "c:/a", "gs://bucket/a b"])
def test_other_names_of_model_dirs_are_taken_as_they_are(name):
    assert est.RunConfig(model_dir=name).model_dir == name
    with pytest.raises(ValueError, match=r"pass URLs as str\. Received: model_dir='gs:/bucket/a'"):
        est.RunConfig(model_dir=pathlib.Path("gs://bucket/a"))
