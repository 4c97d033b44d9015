"""The files of `GraphOnceSaverHook`, beside those of TensorFlow's hook in the same session."""

import time

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import text_format

from estimator_core.checkpoints.background_saver import BackgroundSaver, GraphOnceSaverHook

GRAPHS = {"graph_def": tf1.GraphDef, "meta_graph_def": tf1.MetaGraphDef}


def train(folders, saver_class, save_graph_def=True):
    """Trains from step 3 to 10 with both hooks.

    Returns:
      How often each hook turned the graph into a proto before the first step.
    """
    tf1.summary.FileWriterCache.clear()
    with tf.Graph().as_default() as graph:
        step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", initializer=[1.5, 2.5], use_resource=True)
        tf1.get_variable("text", initializer='a "quoted"\nline, ü', use_resource=True)
        with tf.control_dependencies([weight.assign_add([0.1, -1e-30])]):
            train_op = tf1.assign_add(step, 1)
        with tf.control_dependencies([tf1.global_variables_initializer()]):
            init_op = step.assign(3).op
        scaffold = tf1.train.Scaffold(init_op=init_op, saver=saver_class(max_to_keep=20))
        hooks = [
            kind(str(folder), save_steps=4, scaffold=scaffold, save_graph_def=save_graph_def)
            for kind, folder in zip((tf1.train.CheckpointSaverHook, GraphOnceSaverHook), folders, strict=True)
        ]
        described = []
        describe = graph.as_graph_def

        def count(*args, **options):
            described.append(options)
            return describe(*args, **options)

        def counted(created):
            def after_create_session(session, coord):
                before = len(described)
                created(session, coord)
                counts.append(len(described) - before)

            return after_create_session

        graph.as_graph_def, counts = count, []
        for hook in hooks:
            hook.after_create_session = counted(hook.after_create_session)
        creator = tf1.train.ChiefSessionCreator(scaffold)
        with tf1.train.MonitoredSession(creator, hooks=hooks) as session:
            for _ in range(7):
                session.run(train_op)
    tf1.summary.FileWriterCache.clear()
    return counts


def of_event(event, folder):
    """Returns the step of an event, and what it holds; each says when it was written."""
    assert abs(time.time() - event.wall_time) < 600
    kind = event.WhichOneof("what")
    value = getattr(event, kind)
    if kind in GRAPHS:
        return event.step, kind, GRAPHS[kind].FromString(value)
    return event.step, kind, str(value).replace(str(folder), "")


def files(folder):
    """Returns the contents of the files in a folder by name, the weights as lists."""
    found = {}
    for path in folder.iterdir():
        if path.name.startswith("events."):
            read = tf1.train.summary_iterator(str(path))
            # The first three are written in `begin`, when the hooks are still adding to the graph.
            found["events"] = [of_event(event, folder) for event in read][3:]
        elif path.suffix == ".meta":
            found[path.name] = tf1.MetaGraphDef.FromString(path.read_bytes())
        elif path.suffix == ".index":
            reader = tf.train.load_checkpoint(str(path.with_suffix("")))
            found[path.name] = reader.get_tensor("weight").tolist()
        elif path.suffix == ".pbtxt":
            found[path.name] = text_format.Parse(path.read_text(), tf1.GraphDef())
        elif path.name == "checkpoint":
            lines = path.read_text().splitlines()
            found[path.name] = [line for line in lines if "timestamp" not in line]
    return found


@pytest.fixture
def folders(tmp_path):
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
    return tmp_path / "theirs", tmp_path / "ours"


@pytest.mark.parametrize("save_graph_def", [True, False])
def test_the_files_are_those_of_tensorflow(folders, save_graph_def):
    of_theirs, of_ours = train(folders, BackgroundSaver, save_graph_def)
    theirs, ours = map(files, folders)
    theirs["checkpoint"] = ours["checkpoint"]  # one saver writes both: it lists those of both
    assert ours == theirs
    assert [event[:2] for event in ours["events"]] == [
        (0, "graph_def"),
        (0, "meta_graph_def"),
        *((step, "session_log") for step in (3, 7, 10)),
    ]
    assert ("graph.pbtxt" in ours, "model.ckpt-3.meta" in ours) == (save_graph_def, save_graph_def)
    assert ours["model.ckpt-10.index"][0] == pytest.approx(1.5 + 7 * 0.1)
    assert of_theirs >= 2
    assert of_ours <= 1


def test_another_saver_is_asked_as_usual(folders):
    of_theirs, of_ours = train(folders, tf1.train.Saver)
    theirs, ours = map(files, folders)
    theirs["checkpoint"] = ours["checkpoint"]
    assert ours == theirs
    assert of_ours == of_theirs
