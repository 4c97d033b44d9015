import itertools
import os
import pathlib

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.checkpoints.whole import why_not_whole

_INDEX, _DATA = ".index", ".data-00000-of-00001"


def saved(folder, devices=("/cpu:0",)):
    """A checkpoint of strings, a variable in parts, and small and empty ones: a data file for each device."""
    with tf.Graph().as_default(), tf1.Session() as session:
        for number, device in enumerate(devices):
            with tf1.device(device), tf1.variable_scope(f"part_{number}"):
                words = tf.constant(["a" * 200, "", "été"])
                tf1.get_variable("words", initializer=words, use_resource=True)
                tf1.get_variable("in_parts", [10, 3], partitioner=tf1.fixed_size_partitioner(3))
                tf1.get_variable("half", [], tf.bfloat16, tf1.zeros_initializer())
                tf1.get_variable("is_there", initializer=tf.constant([True, False]))
                tf1.get_variable("empty", [0, 4])
        session.run(tf1.global_variables_initializer())
        return tf1.train.Saver(sharded=True).save(session, str(folder / "model.ckpt"), 5)


def cut(path, to):
    """Makes a file so long, or so much shorter; None removes it, and zeros take its place."""
    if to is None:
        os.remove(path)
    elif to == "zeros":
        pathlib.Path(path).write_bytes(bytes(os.path.getsize(path)))
    else:
        os.truncate(path, to if to >= 0 else os.path.getsize(path) + to)


def test_what_keras_has_written_is_whole(tmp_path):
    checkpoint = tf.train.Checkpoint(x=tf.Variable(1.0), words=tf.Variable(["one", "two"]))
    path = checkpoint.save(str(tmp_path / "ckpt"))
    assert why_not_whole(path) is None
    cut(f"{path}{_DATA}", -1)
    assert _DATA[:6] in why_not_whole(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("suffix", "to"), [*itertools.product([_INDEX, _DATA], [None, 0, 1, 60, -1]), (_INDEX, "zeros")]
)
def test_a_file_that_is_missing_or_cut_is_named(suffix, to, tmp_path):
    path = saved(tmp_path)
    cut(f"{path}{suffix}", to)
    if to is None:
        assert why_not_whole(path) == f"{path}{suffix} is missing"
    else:
        assert why_not_whole(path).startswith(f"{path}{suffix[:5]}")
        assert "can't be read" in why_not_whole(path)


def test_each_of_several_data_files_has_to_be_there(tmp_path):
    path = saved(tmp_path, ["/cpu:0", "/cpu:1"])
    assert why_not_whole(path) is None
    os.remove(f"{path}.data-00001-of-00002")
    assert why_not_whole(path) == f"{path}.data-00001-of-00002 is missing"


def test_a_file_that_changes_is_looked_at_anew(tmp_path):
    path = saved(tmp_path)
    # A data file of an earlier save of the step does not matter.
    (tmp_path / "model.ckpt-5.data-00001-of-00003").write_bytes(b"")
    assert why_not_whole(path) is None
    cut(f"{path}{_DATA}", -1)
    assert why_not_whole(path) is not None
    saved(tmp_path)
    assert why_not_whole(path) is None


def test_the_format_of_tensorflow_0_is_one_file_without_an_index(tmp_path):
    path = tmp_path / "model.ckpt-5"
    assert why_not_whole(str(path)) == f"{path}.index is missing"
    path.write_bytes(b"of TensorFlow 0.12")
    assert why_not_whole(str(path)) is None


def test_a_tensor_of_which_only_a_slice_was_saved_breaks_nothing(tmp_path):
    # A slot of one partition of a variable has the shape of the whole variable, and its own slice alone.
    with tf.Graph().as_default(), tf1.Session() as session:
        values = tf1.get_variable("slot", [10, 3], use_resource=False)
        values._set_save_slice_info(tf.Variable.SaveSliceInfo("slot", [1_000, 3], [0, 0], [10, 3]))
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver([values]).save(session, str(tmp_path / "model.ckpt"))
    assert why_not_whole(path) is None
