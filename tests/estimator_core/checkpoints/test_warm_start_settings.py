"""The meaning of an Estimator's warm_start_from, and variables that start from a checkpoint."""

import os
import pathlib
import pickle

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.checkpoints.warm_start_report import warm_start
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings, as_settings


@pytest.mark.parametrize("path", ["dir/model.ckpt-3", b"dir/model.ckpt-3", pathlib.Path("dir/model.ckpt-3")])
def test_a_path_is_all_trainable_variables_of_a_checkpoint(path):
    assert as_settings(path) == WarmStartSettings("dir/model.ckpt-3", ".*", None, None)


def test_a_saved_model_stands_for_its_variables(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    tf.saved_model.save(module, str(tmp_path))
    found = as_settings(str(tmp_path)).ckpt_to_initialize_from
    assert found == os.path.join(tmp_path, "variables", "variables")


def test_settings_and_nothing_stay_as_they_are_and_anything_else_is_refused():
    settings = WarmStartSettings("dir", vars_to_warm_start=["a", "b"])
    assert as_settings(settings) is settings
    assert as_settings(None) is None
    with pytest.raises(ValueError, match="warm_start_from must be a path or WarmStartSettings"):
        as_settings(3)
    with pytest.raises(ValueError, match="ckpt_to_initialize_from=''"):
        as_settings("")


@pytest.mark.parametrize("nothing", ["", None])
def test_a_warm_start_from_nothing_is_refused(nothing):
    with pytest.raises(ValueError, match="ckpt_to_initialize_from must be the path"):
        WarmStartSettings(nothing)


def test_the_mappings_can_always_be_read():
    # As printed by tf.estimator 2.15.
    expected = (
        "WarmStartSettings(ckpt_to_initialize_from='/x', vars_to_warm_start='.*', "
        "var_name_to_vocab_info={}, var_name_to_prev_var_name={})"
    )
    assert repr(WarmStartSettings("/x")) == expected
    assert repr(WarmStartSettings("/x", ".*", None, None)) == expected
    settings = WarmStartSettings("/x", var_name_to_prev_var_name={"a": "b"})
    assert settings._replace(vars_to_warm_start="a") == ("/x", "a", {}, {"a": "b"})
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.fixture
def trained(make_estimator, input_fn):
    return make_estimator().train(input_fn, steps=2)  # w = 1.5


def test_the_variables_of_a_saved_model(trained, session, tmp_path):
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([1])})
    path = trained.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    weight = tf1.get_variable("weight", initializer=0.0)
    warm_start(as_settings(path))
    session.run(tf1.global_variables_initializer())
    assert session.run(weight) == 1.5


def test_names_of_variables_may_have_changed(trained, session):
    renamed = tf1.get_variable("renamed", initializer=0.0)
    other = tf1.get_variable("other", initializer=7.0)
    names = {"renamed": "weight"}
    warm_start(est.WarmStartSettings(trained.model_dir, "renamed", var_name_to_prev_var_name=names))
    session.run(tf1.global_variables_initializer())
    assert session.run([renamed, other]) == [1.5, 7.0]


def test_a_variable_that_the_checkpoint_lacks_is_named(trained, graph):
    tf1.get_variable("absent", initializer=0.0)
    with pytest.raises(ValueError, match="absent"):
        warm_start(as_settings(trained.model_dir))
