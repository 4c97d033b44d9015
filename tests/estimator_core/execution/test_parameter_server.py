"""A task of a cluster whose servers are all in this process, or missing."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.experimental.local_cluster import free_ports
from tests.estimator_core.programs import batch_of
from tests.integration.cluster.in_process import cluster_in_this_process, tf_config_of

_kept = []  # a server lives as long as its object


@pytest.fixture
def as_task(monkeypatch):
    """Sets TF_CONFIG as a cluster does."""
    return lambda config: monkeypatch.setenv("TF_CONFIG", json.dumps(config))


@pytest.mark.more
def test_train_uses_the_server_that_the_program_has_started(as_task, make_estimator, input_fn):
    as_task(tf_config_of(cluster_in_this_process()))
    estimator = make_estimator(session_creation_timeout_secs=None).train(input_fn, steps=3)
    assert estimator.get_variable_value("global_step") == 3
    assert estimator.get_variable_value("weight") == 2 - 2 / 2**3
    estimator.train(input_fn, max_steps=5)  # goes on from the checkpoint
    assert estimator.get_variable_value("weight") == 2 - 2 / 2**5


def test_a_parameter_server_strategy_trains_on_the_servers(as_task, make_estimator, input_fn):
    as_task(tf_config_of(cluster_in_this_process()))
    strategy = tf1.distribute.experimental.ParameterServerStrategy()
    estimator = make_estimator(train_distribute=strategy).train(input_fn, steps=3)
    assert estimator.get_variable_value("weight") == 2 - 2 / 2**3


def test_the_chief_evaluates_predicts_and_exports_on_its_own(
    as_task, make_estimator, input_fn, eval_input_fn, tmp_path
):
    as_task(tf_config_of(cluster_in_this_process()))
    estimator = make_estimator().train(input_fn, steps=1)
    # The weight is 1, labels are 0, the batches x = [1, 2] and [3].
    assert estimator.evaluate(eval_input_fn)["loss"] == ((1 + 4) / 2 + 9) / 2
    assert [each["y"] for each in estimator.predict(eval_input_fn)] == [1.0, 2.0, 3.0]
    spec = {"x": tf.TensorSpec([None], tf.float32, "x")}
    receiver_fn = est.export.build_raw_serving_input_receiver_fn(spec)
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    operations = tf.saved_model.load(path).graph.get_operations()
    assert not any("job" in operation.device for operation in operations)


def placements(estimator, input_fn):
    """The devices of variables, of the batch and of the loss in the graph of training."""
    program = estimator.build_program("train", input_fn)
    with program.graph.as_default():
        variables = {v.op.name: v.op.device for v in tf1.global_variables()}
        batch = [o.device for o in program.graph.get_operations() if o.type == "IteratorGetNext"]
        return variables, batch, program.spec.loss.device


TASKS = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}
WORKER_1 = {"cluster": TASKS, "task": {"type": "worker", "index": 1}}


def test_variables_are_on_the_servers_and_the_rest_is_here(as_task, make_estimator, input_fn):
    as_task(WORKER_1)
    variables, batch, loss = placements(make_estimator(), input_fn)
    assert variables == {"global_step": "/job:ps/task:0", "weight": "/job:ps/task:1"}
    assert batch == ["/job:worker/task:1/device:CPU:0"]
    assert loss == "/job:worker/task:1"


def test_device_fn_replaces_the_placement(as_task, make_estimator, input_fn):
    as_task(WORKER_1)

    def device_fn(op):
        return "/job:ps/task:1" if op.type == "VarHandleOp" else "/job:chief"

    variables, _, loss = placements(make_estimator(device_fn=device_fn), input_fn)
    assert set(variables.values()) == {"/job:ps/task:1"}
    assert loss == "/job:chief"


def fresh_cluster(kind):
    """A cluster in which nothing listens yet, on ports that are free."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(4)]
    tasks = {"chief": addresses[:1], "worker": addresses[1:2], "ps": addresses[2:]}
    return {"cluster": tasks, "task": {"type": kind, "index": 0}}


def start_servers(config, *tasks):
    spec = tf.train.ClusterSpec(config["cluster"])
    _kept.extend(tf1.train.Server(spec, kind, index) for kind, index in tasks)


def test_without_a_server_of_its_own_a_task_says_so(as_task, make_estimator, input_fn, monkeypatch):
    config = fresh_cluster("chief")
    as_task(config)
    monkeypatch.setattr("estimator_core.execution.parameter_server._OWN_SERVER_SECS", 0)
    with pytest.raises(tf.errors.DeadlineExceededError) as error:
        make_estimator().train(input_fn, steps=1)
    assert f"this task itself, chief 0 at {config['cluster']['chief'][0]}" in error.value.message
    assert "tf.compat.v1.train.Server" in error.value.message


def test_a_chief_whose_servers_are_missing_names_them(as_task, make_estimator, input_fn):
    config = fresh_cluster("chief")
    first, second = config["cluster"]["ps"]
    start_servers(config, ("ps", 1))
    as_task(config)
    with pytest.raises(tf.errors.DeadlineExceededError) as error:
        est.train_and_evaluate(
            make_estimator(session_creation_timeout_secs=1),
            est.TrainSpec(input_fn, 3),
            est.EvalSpec(input_fn, steps=1),
        )
    assert f"ps 0 at {first}." in error.value.message
    assert second not in error.value.message
    assert "worker" not in error.value.message  # a chief's session does without workers


@pytest.mark.more
def test_a_worker_whose_chief_is_missing_names_it(as_task, make_estimator, input_fn):
    config = fresh_cluster("worker")
    start_servers(config, ("ps", 0), ("ps", 1), ("worker", 0))
    as_task(config)
    with pytest.raises(tf.errors.DeadlineExceededError) as error:
        make_estimator(session_creation_timeout_secs=1).train(input_fn, steps=1)
    chief = config["cluster"]["chief"][0]
    assert f"chief 0 at {chief} does not answer" in error.value.message


@pytest.mark.more
@pytest.mark.parametrize("optimizer", ["Ftrl", est.experimental.LinearSDCA("id", num_table_shards=2)])
def test_linear_models_learn_on_parameter_servers(as_task, tmp_path, optimizer):
    """The label is the sign of x, for which one weight is enough."""
    as_task(tf_config_of(cluster_in_this_process()))
    features = {"x": [[-2.0], [-1.0], [1.0], [2.0]], "id": ["a", "b", "c", "d"]}
    input_fn = batch_of(features, [[0], [0], [1], [1]], repeat=None)
    estimator = est.LinearClassifier(
        [tf.feature_column.numeric_column("x")], str(tmp_path), optimizer=optimizer
    )
    estimator.train(input_fn, steps=20)
    assert estimator.evaluate(input_fn, steps=1)["accuracy"] == 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("steps_per_iteration", [1, 3])
def test_kmeans_finds_centers_on_parameter_servers(as_task, tmp_path, steps_per_iteration):
    # Of its own: a server keeps the float variables of the name "Variable" that other tests make.
    as_task(tf_config_of(cluster_in_this_process("kmeans")))
    points = np.float32([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [9.0, 11.0]])
    settings = {"use_mini_batch": True, "mini_batch_steps_per_iteration": steps_per_iteration}
    estimator = est.experimental.KMeans(2, str(tmp_path), points[[0, 2]], **settings)
    estimator.train(batch_of(points, repeat=None), steps=30)
    np.testing.assert_allclose(sorted(estimator.cluster_centers().tolist()), [[0, 1], [9, 10]], atol=0.2)


@pytest.mark.more
def test_a_master_trains_on_parameter_servers_and_evaluates_here(
    as_task, make_estimator, input_fn, eval_input_fn
):
    config = fresh_cluster("chief")
    config["cluster"]["master"] = config["cluster"].pop("chief")
    config["task"]["type"] = "master"
    start_servers(config, ("ps", 0), ("ps", 1))
    as_task(config)
    estimator = make_estimator(save_checkpoints_steps=2)
    result = est.train_and_evaluate(
        estimator, est.TrainSpec(input_fn, max_steps=5), est.EvalSpec(eval_input_fn, throttle_secs=0)
    )
    assert result is None
    evaluations = est.summaries.read_evaluations(estimator.eval_dir())
    assert sorted(evaluations) == [2, 4, 5]
    weight = 2 - 2 / 2**5  # labels are 0, the batches x = [1, 2] and [3]
    np.testing.assert_allclose(evaluations[5]["mae"], weight * (1 + 2 + 3) / 3)
