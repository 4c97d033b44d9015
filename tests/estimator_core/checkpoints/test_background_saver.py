"""Checkpoints that are written while training goes on."""

import os
import threading

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.checkpoints import background_saver
from estimator_core.checkpoints.background_saver import BackgroundSaver
from tests.estimator_core.programs import AfterEachRun, batch_of, saved_steps

SECS = 60  # after which a test that waits fails


@pytest.fixture
def graph():
    """Two variables, one of them in parts, and a table that can be changed."""
    with tf.Graph().as_default() as graph:
        weight = tf1.get_variable("weight", initializer=1.5, use_resource=True)
        tf1.get_variable(
            "parts",
            shape=[5, 2],
            initializer=tf1.random_normal_initializer(),
            partitioner=tf1.fixed_size_partitioner(2),
            use_resource=True,
        )
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        graph.insert = table.insert(["a", "b"], tf.constant([3, 4], tf.int64))
        graph.weight, graph.add = weight, weight.assign_add(2.0)
        yield graph


def contents(path):
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name).tolist() for name in reader.get_variable_to_shape_map()}


def session_of(graph):
    session = tf1.Session()
    session.run(tf1.global_variables_initializer())
    session.run(graph.insert)
    return session


def beside_saver(kind=BackgroundSaver, **settings):
    saver = kind(**settings)
    saver.writes_beside = True
    return saver


@pytest.mark.parametrize("sharded", [False, True])
def test_the_files_are_those_of_a_saver(graph, tmp_path, sharded):
    usual = tf1.train.Saver(sharded=sharded)
    beside = beside_saver(sharded=sharded)
    with session_of(graph) as session:
        usual.save(session, str(tmp_path / "usual"), global_step=7)
        path = beside.save(session, str(tmp_path / "beside"), global_step=7)
        beside.wait()
        assert path == str(tmp_path / "beside-7")
        assert contents(path) == contents(tmp_path / "usual-7")
        assert len(contents(path)) == 4  # weight, parts, and the keys and values of the table
        assert tf.train.latest_checkpoint(str(tmp_path)) == path
        session.run(graph.add)
        beside.restore(session, path)
        assert session.run(graph.weight) == 1.5
    with tf.Graph().as_default():
        restored = tf1.train.import_meta_graph(f"{path}.meta")
        with tf1.Session() as session:
            restored.restore(session, path)
            (weight,) = [each for each in tf1.global_variables() if each.op.name == "weight"]
            assert session.run(weight) == 1.5


class Held(BackgroundSaver):
    """Begins to write only once `may_write` is set."""

    def __init__(self):
        super().__init__()
        self.writes_beside = True
        self.may_write = threading.Event()

    def _write(self, *args):
        assert self.may_write.wait(SECS)
        super()._write(*args)


def test_a_checkpoint_has_the_values_of_its_step(graph, tmp_path):
    saver = Held()
    with session_of(graph) as session:
        saver.save(session, str(tmp_path / "model"), global_step=1)
        for _ in range(3):
            session.run(graph.add)
        assert tf.train.latest_checkpoint(str(tmp_path)) is None
        saver.may_write.set()
        saver.wait()
    assert contents(tmp_path / "model-1")["weight"] == 1.5


def test_a_save_waits_for_the_one_before(graph, tmp_path):
    saver = beside_saver(max_to_keep=2)
    with session_of(graph) as session:
        for step in range(1, 6):
            saver.save(session, str(tmp_path / "model"), global_step=step)
            session.run(graph.add)
        saver.wait()
    assert saved_steps(tmp_path) == [4, 5]
    assert contents(tmp_path / "model-4")["weight"] == 1.5 + 3 * 2
    assert not (tmp_path / "model-3.index").exists()


def test_earlier_checkpoints_are_found_in_a_folder_with_any_name(graph, tmp_path):
    folder = tmp_path / "model[1]*"
    folder.mkdir()
    with session_of(graph) as session:
        path = BackgroundSaver().save(session, str(folder / "model"), global_step=1)
    saver = BackgroundSaver()
    saver.recover_last_checkpoints([str(folder / "model-0"), path])
    assert saver.last_checkpoints == [path]


@pytest.mark.parametrize("then", ["wait", "save"])
def test_an_error_of_writing_is_raised(graph, tmp_path, then):
    saver = beside_saver()
    folder = tmp_path / "there"
    folder.write_text("a file, where a folder should be")
    with session_of(graph) as session:
        saver.save(session, str(folder / "model"), global_step=1)
        with pytest.raises((tf.errors.OpError, ValueError), match="there"):
            saver.wait() if then == "wait" else saver.save(session, str(tmp_path / "model"), 2)
        saver.save(session, str(tmp_path / "model"), global_step=3)
        saver.wait()
    assert contents(tmp_path / "model-3")["weight"] == 1.5


def test_many_values_are_written_at_once(graph, tmp_path, monkeypatch):
    """They are not held twice."""
    monkeypatch.setattr(background_saver, "_MOST_BYTES", 43)
    saver = Held()
    with session_of(graph) as session:
        saver.save(session, str(tmp_path / "model"), global_step=1)
    assert contents(tmp_path / "model-1")["weight"] == 1.5


def test_the_meta_graph_is_that_of_the_graph_now(graph, tmp_path):
    saver = BackgroundSaver()
    with session_of(graph) as session:
        paths = [saver.save(session, str(tmp_path / "model"), global_step=1)]
        tf.constant(5.0, name="added_later")
        paths.append(saver.save(session, str(tmp_path / "model"), global_step=2))
        tf1.add_to_collection("noted_later", "a word")
        paths.append(saver.save(session, str(tmp_path / "model"), global_step=3))
    for path, has_node, has_note in zip(paths, (0, 1, 1), (0, 0, 1), strict=True):
        meta = tf1.MetaGraphDef.FromString(tf.io.gfile.GFile(f"{path}.meta", "rb").read())
        assert ("added_later" in {node.name for node in meta.graph_def.node}) == has_node
        assert ("noted_later" in meta.collection_def) == has_note


# In a training


@pytest.fixture
def slow_writes(monkeypatch):
    """Makes each write in the background take a while."""
    write = BackgroundSaver._write
    begun = []

    def slowly(self, *args):
        begun.append(args[2])
        threading.Event().wait(0.3)
        write(self, *args)

    monkeypatch.setattr(BackgroundSaver, "_write", slowly)
    return begun


def estimator(model_dir, **settings):
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", initializer=0.0)
        step = tf1.train.get_global_step()
        with tf.control_dependencies([weight.assign_add(1.0)]):
            train_op = step.assign_add(1)
        loss = tf.debugging.check_numerics(features["x"][0] + weight, "no number", name="the_loss")
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = est.RunConfig(model_dir=str(model_dir), save_checkpoints_steps=2, **settings)
    return est.Estimator(model_fn, config=config)


endless = batch_of({"x": [1.0]}, [1.0], repeat=None)


@pytest.mark.parametrize("hooks", [[], [est.LoggingTensorHook(["the_loss"], every_n_iter=1)]])
def test_training_ends_when_its_last_checkpoint_is_written(tmp_path, slow_writes, hooks):
    """Hooks of TensorFlow do not stop it from writing in the background."""
    estimator(tmp_path).train(endless, hooks=hooks, steps=5)
    assert slow_writes == [0, 2, 4, 5]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")
    assert [contents(tmp_path / f"model.ckpt-{step}")["weight"] for step in (2, 4, 5)] == [2, 4, 5]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("a hook", [0, 2, 2, 4, 4]), ("early stopping", [0, 2, 2, 4, 4]), ("a listener", [0, 2, 4, 5])],
)
def test_who_looks_for_checkpoints_finds_that_of_the_step(tmp_path, slow_writes, kind, expected):
    """Such as a hook that evaluates, or copies, the newest checkpoint."""
    found = []

    def look(*_):
        found.append(os.path.basename(tf.train.latest_checkpoint(str(tmp_path)) or ""))

    made = estimator(tmp_path)
    stopping = est.experimental.make_early_stopping_hook(made, look, None, run_every_steps=1)
    hooks = {"a hook": [AfterEachRun(look)], "early stopping": [stopping]}.get(kind)
    listener = type("Listener", (est.CheckpointSaverListener,), {"after_save": look})()
    made.train(endless, hooks, steps=5, saving_listeners=[listener] if kind == "a listener" else None)
    names = [f"model.ckpt-{step}" for step in expected]
    assert found == names if kind != "early stopping" else set(found) >= set(names)
    assert slow_writes == []


def test_an_error_of_a_step_loses_no_checkpoint(tmp_path, slow_writes):
    fails_in_the_fifth = ({"x": [[1.0], [1.0], [1.0], [1.0], [np.nan]]}, np.zeros([5, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        estimator(tmp_path).train(lambda: tf.data.Dataset.from_tensor_slices(fails_in_the_fifth))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-4")
    assert contents(tmp_path / "model.ckpt-4")["weight"] == 4
    assert slow_writes == [0, 2, 4]


def test_a_checkpoint_that_can_not_be_written_ends_the_training(tmp_path, monkeypatch):
    def full(self, session, path, step, options):
        self._error = OSError("No space left on device")

    monkeypatch.setattr(BackgroundSaver, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        estimator(tmp_path).train(endless, steps=1)
