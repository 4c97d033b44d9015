"""The parts of `ReplicasInSync`: its calls of input_fn, its scaffold and its sessions."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.current import building
from estimator_core.execution.strategy import ReplicasInSync


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


def built_step(execution, step_fn, mode="train"):
    """The step of all replicas, over endless batches of x = 1."""
    inputs = execution.make_inputs(
        lambda input_context: tf.data.Dataset.from_tensors({"x": [1.0]}).repeat(), mode
    )
    return execution.build_step(inputs, step_fn, mode).spec


def test_scaffolds_are_united(strategy):
    """Both replicas' operations, feeds and checks; the summaries and the saver of the first."""
    summaries_and_savers = []

    def step_fn(features, labels):
        replica = int(tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group))
        # Each replica has a value of its own, and reading adds them up.
        own = {"synchronization": tf.VariableSynchronization.ON_READ}
        own["aggregation"] = tf.VariableAggregation.SUM
        begun = tf1.get_variable("begun", [], initializer=tf1.zeros_initializer(), **own)
        local = tf1.get_local_variable("local", [], initializer=tf1.zeros_initializer(), **own)
        start = tf1.placeholder(tf.float32, [])
        scaffold = tf1.train.Scaffold(
            init_op=begun.assign(start),
            init_feed_dict={start: 10.0**replica},
            ready_op=tf.constant([f"variable {replica}"]),
            ready_for_local_init_op=tf.constant([f"global variable {replica}"]),
            local_init_op=local.assign(start),
            local_init_feed_dict={start: 3.0 * 10.0**replica},
            summary_op=tf.constant(f"summary {replica}"),
            saver=tf1.train.Saver(defer_build=True),
        )
        summaries_and_savers.append((scaffold.summary_op, scaffold.saver))
        return est.EstimatorSpec("train", loss=tf.constant(0.0), train_op=tf.no_op(), scaffold=scaffold)

    execution = ReplicasInSync(strategy)
    with tf.Graph().as_default() as graph, building(graph, execution):
        scaffold = built_step(execution, step_fn).scaffold
        sums = [tf1.global_variables("begun")[0] + 0.0, tf1.local_variables("local")[0] + 0.0]
        with execution.session_creator(tf1.train.Scaffold()).create_session() as session:
            session.run(scaffold.init_op, scaffold.init_feed_dict)
            session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
            assert session.run(sums) == [11.0, 33.0]
            assert session.run(scaffold.ready_op).tolist() == [b"variable 0", b"variable 1"]
            names = session.run(scaffold.ready_for_local_init_op).tolist()
            assert names == [b"global variable 0", b"global variable 1"]
    assert (scaffold.summary_op, scaffold.saver) == summaries_and_savers[0]


def test_scaffolds_that_ask_for_nothing(strategy):
    def step_fn(features, labels):
        return est.EstimatorSpec("infer", features)

    execution = ReplicasInSync(strategy)
    with tf.Graph().as_default() as graph, building(graph, execution):
        scaffold = built_step(execution, step_fn, "infer").scaffold
    for name in ("init_op", "init_fn", "ready_op", "ready_for_local_init_op", "local_init_op"):
        assert getattr(scaffold, name) is None
    assert scaffold.init_feed_dict is scaffold.local_init_feed_dict is None


def test_there_is_one_input_pipeline(strategy):
    def input_fn(input_context):
        contexts.append(input_context)
        dataset = tf.data.Dataset.range(4)
        return dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    contexts = []
    execution = ReplicasInSync(strategy)
    with tf.Graph().as_default() as graph, building(graph, execution):
        inputs = execution.make_inputs(input_fn, "infer")
        batches = [batch for batch, _ in inputs.next_batches(4)]
        with tf1.train.MonitoredSession(hooks=inputs.hooks) as session:
            assert session.run(batches) == [0, 1, 2, 3]
    assert contexts[0].num_replicas_in_sync == 2


def test_sessions_see_all_devices_unless_they_are_told_how_many(strategy):
    def config_of(session_config=None):
        with tf.Graph().as_default():
            creator = ReplicasInSync(strategy, session_config).session_creator(tf1.train.Scaffold())
            with creator.create_session() as session:
                return session._config

    assert dict(config_of().device_count) == {"CPU": 2}
    assert config_of().allow_soft_placement is True
    given = tf1.ConfigProto(intra_op_parallelism_threads=3)
    used = config_of(given)
    assert (used.intra_op_parallelism_threads, used.allow_soft_placement) == (3, False)
    assert dict(used.device_count) == {"CPU": 2}
    assert dict(given.device_count) == {}  # the caller's own stays as it was
    assert dict(config_of(tf1.ConfigProto(device_count={"CPU": 1})).device_count) == {"CPU": 1}


def test_a_strategy_averages_for_estimators_alone(strategy):
    """An optimizer in a program of the user's own adds the replicas' gradients up, before and after."""

    def gradient():
        with tf.Graph().as_default(), strategy.scope():
            weight = tf1.get_variable("weight", initializer=1.0)

            def in_replica():
                optimizer = tf1.train.GradientDescentOptimizer(1.0)
                ((found, _),) = optimizer.compute_gradients(lambda: 3.0 * weight, [weight])
                return found

            found = strategy.experimental_local_results(strategy.run(in_replica))[0]
            with ReplicasInSync(strategy).session_creator(tf1.train.Scaffold()).create_session() as s:
                return s.run(found)

    assert gradient() == 3.0
    execution = ReplicasInSync(strategy)
    with tf.Graph().as_default() as graph, building(graph, execution):
        with execution.losses_as_they_are():
            assert gradient() == 3.0
        assert gradient() == 1.5
    assert gradient() == 3.0
