"""Workers in sync, as far as one process shows it; tests/integration/cluster trains in several."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.cluster.collectives import Peers
from estimator_core.execution.cluster.server import Task
from estimator_core.execution.current import building
from estimator_core.execution.select import select_execution
from estimator_core.execution.workers_in_sync import SessionInStep, WorkersInSync
from tests.estimator_core.programs import batch_of, descent, zeros

ON_READ = tf.VariableSynchronization.ON_READ
WORKERS = {"worker": ["localhost:1", "localhost:2", "localhost:3"]}
WITH_CHIEF = {"chief": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}


@pytest.fixture(autouse=True)
def graph():
    """In a graph, a strategy starts no server, and does not wait for the other tasks."""
    with tf.Graph().as_default() as graph:
        yield graph


def config_in(monkeypatch, kind, index, tasks=WORKERS, strategy=None):
    task = {"type": kind, "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": tasks, "task": task}))
    strategy = strategy or tf.distribute.MultiWorkerMirroredStrategy()
    return est.RunConfig(train_distribute=strategy)


@pytest.mark.parametrize(
    ("kind", "index", "tasks", "is_chief", "pipeline"),
    [
        ("worker", 0, WORKERS, True, 0),
        ("worker", 2, WORKERS, False, 2),
        ("chief", 0, WITH_CHIEF, True, 0),
        ("worker", 0, WITH_CHIEF, False, 1),
    ],
)
def test_each_worker_has_one_model_and_an_input_of_its_own(
    monkeypatch, kind, index, tasks, is_chief, pipeline
):
    execution = select_execution(config_in(monkeypatch, kind, index, tasks), "train")
    assert type(execution) is WorkersInSync
    assert execution.is_chief is is_chief
    assert (execution.num_replicas, execution.num_models, execution.num_tasks_in_step) == (3, 1, 3)
    contexts = []

    def input_fn(context):
        contexts.append(context)
        return tf.data.Dataset.from_tensors(([1.0], [2.0]))

    tf1.train.create_global_step()
    execution.make_inputs(input_fn, "train")
    (context,) = contexts
    assert context.num_input_pipelines == context.num_replicas_in_sync == 3
    assert context.input_pipeline_id == pipeline


def test_the_strategy_of_tensorflow_1_is_the_same(monkeypatch):
    config_in(monkeypatch, "worker", 0)
    strategy = tf1.distribute.experimental.MultiWorkerMirroredStrategy()
    config = config_in(monkeypatch, "worker", 0, strategy=strategy)
    assert type(select_execution(config, "train")) is WorkersInSync


def test_parameter_servers_are_refused(monkeypatch):
    tasks = {**WITH_CHIEF, "ps": ["localhost:4"]}
    with pytest.raises(ValueError, match="leave other tasks out"):
        select_execution(config_in(monkeypatch, "chief", 0, tasks), "train")


def test_a_strategy_of_another_cluster_is_refused(monkeypatch):
    spec = tf.train.ClusterSpec({"worker": ["localhost:1", "localhost:9", "localhost:3"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=0)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
    config = config_in(monkeypatch, "worker", 0, strategy=strategy)
    with pytest.raises(ValueError, match="is not that of TF_CONFIG") as error:
        select_execution(config, "train")
    assert "localhost:9" in str(error.value)


def test_a_dataset_is_needed(monkeypatch):
    execution = select_execution(config_in(monkeypatch, "worker", 0), "train")
    tf1.train.create_global_step()
    with pytest.raises(ValueError, match=r"must return a tf\.data\.Dataset"):
        execution.make_inputs(lambda context: ([1.0], [2.0]), "train")


def moving(execution, name, aggregation, **options):
    options |= {"synchronization": ON_READ, "aggregation": aggregation, "trainable": False}
    with execution.scope():
        return tf1.get_variable(name, [], **options)


def test_what_is_averaged_when_it_is_read_is_averaged_when_it_is_written(monkeypatch):
    execution = select_execution(config_in(monkeypatch, "worker", 0), "train")
    average = moving(execution, "average", tf.VariableAggregation.MEAN)
    assert average.synchronization == tf.VariableSynchronization.ON_WRITE
    local = moving(execution, "local", tf.VariableAggregation.SUM, collections=["local_variables"])
    assert local.synchronization == ON_READ
    assert moving(execution, "first", tf.VariableAggregation.ONLY_FIRST_REPLICA).synchronization == ON_READ
    with pytest.raises(ValueError, match="name='count'"):  # it is saved
        moving(execution, "count", tf.VariableAggregation.SUM)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
def test_the_metrics_of_a_keras_model_are_not_saved(monkeypatch, tmp_path, graph, kind):
    keras = pytest.importorskip(kind)
    with tf.__internal__.eager_context.eager_mode():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mse"])
        estimator = est.model_to_estimator(model, model_dir=tmp_path)
    execution = select_execution(config_in(monkeypatch, "worker", 0), "train")
    tf1.train.create_global_step()
    with building(graph, execution):
        tf.distribute.get_strategy().extended.call_for_each_replica(
            estimator.model_fn, (tf.ones([2, 1]), tf.ones([2, 1]), "train", estimator.config)
        )
    saved = {variable.op.name for variable in tf1.global_variables()}
    assert {name.split("/")[-1] for name in saved} & {"total", "count", "kernel"} == {"kernel"}


def test_models_that_can_not_be_split_are_refused(monkeypatch, tmp_path):
    config = config_in(monkeypatch, "worker", 0).replace(model_dir=str(tmp_path))
    kmeans = est.experimental.KMeans(2, config=config)
    with pytest.raises(ValueError, match="KMeans can't be trained by tasks that make each step"):
        kmeans.train(lambda: tf.data.Dataset.from_tensors([[1.0], [2.0]]), max_steps=1)
    optimizer = est.experimental.LinearSDCA("id")
    columns = [tf.feature_column.numeric_column("x")]
    model = est.LinearRegressor(columns, optimizer=optimizer, config=config)
    data = ({"x": [[1.0]], "id": ["a"]}, [[1.0]])
    with pytest.raises(ValueError, match="LinearSDCA can't be split"):
        model.train(lambda: tf.data.Dataset.from_tensors(data), max_steps=1)


def test_without_a_cluster_it_is_the_strategy_of_one_process(monkeypatch, tmp_path):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def model_fn(features, labels, mode):
        weight = zeros("weight")
        loss = tf.reduce_mean(tf.square(weight * features - labels))
        return est.EstimatorSpec(mode, weight, loss, descent(loss, 0.125))

    config = est.RunConfig(model_dir=str(tmp_path), train_distribute=strategy, eval_distribute=strategy)
    estimator = est.Estimator(model_fn, config=config).train(batch_of([1.0], [4.0], repeat=None), steps=3)
    # The gradient is 2 (weight - 4): each step goes a quarter of the way. 4 - 4 * 0.75 ** 3 = 2.3125
    assert estimator.get_variable_value("weight") == pytest.approx(2.3125, rel=1e-6)
    metrics = estimator.evaluate(batch_of([1.0], [4.0]), steps=1)
    assert metrics["loss"] == pytest.approx((4 - 2.3125) ** 2, rel=1e-6)


def session_of_worker_1(rows, paths):
    """The session of a task that finds these checkpoints, one a round, and receives these rows."""
    peers = Peers([Task("worker", index, f"host{index}:1") for index in range(2)], 1)
    rows, paths, slept = iter(rows), iter(paths), []
    receive = lambda graph, checkpoint: np.array(next(rows))  # noqa: E731
    return SessionInStep(None, peers, receive, lambda: next(paths), 1.0, slept.append), slept


def test_a_task_waits_for_the_checkpoint_of_the_chief():
    rows = [[[5, 30], [5, 20]], [[5, 30], [5, 30]]]
    session, slept = session_of_worker_1(rows, ["m/model.ckpt-2", "m/model.ckpt-3"])
    session.agree()
    assert slept == [1.0]


def test_tasks_that_go_on_finding_different_checkpoints_end():
    session, slept = session_of_worker_1([[[5, 30], [5, 20]]] * 60, ["m/model.ckpt-2"] * 60)
    with pytest.raises(ValueError, match="that the first finds: worker 1 at host1:1") as error:
        session.agree()
    assert "model_dir that they share" in str(error.value)
    assert sum(slept) == 60


def test_a_task_with_another_model_is_named():
    session, _ = session_of_worker_1([[[5, 0], [6, 0]]], [None])
    with pytest.raises(ValueError, match="differs from that of the first: worker 1 at host1:1"):
        session.agree()
