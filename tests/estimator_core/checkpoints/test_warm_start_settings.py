"""The meaning of an Estimator's warm_start_from."""

import os
import pathlib
import pickle

import pytest
import tensorflow as tf

from estimator_core.checkpoints.warm_start_settings import WarmStartSettings, as_settings


@pytest.mark.parametrize("path", ["dir/model.ckpt-3", b"dir/model.ckpt-3", pathlib.Path("dir/model.ckpt-3")])
def test_a_path_is_all_trainable_variables_of_a_checkpoint(path):
    assert as_settings(path) == WarmStartSettings("dir/model.ckpt-3", ".*", None, None)


def test_settings_and_nothing_stay_as_they_are():
    settings = WarmStartSettings("dir", vars_to_warm_start=["a", "b"])
    assert as_settings(settings) is settings
    assert as_settings(None) is None


def test_a_saved_model_stands_for_its_variables(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    tf.saved_model.save(module, str(tmp_path))
    found = as_settings(str(tmp_path)).ckpt_to_initialize_from
    assert found == os.path.join(tmp_path, "variables", "variables")


def test_anything_else_is_refused():
    with pytest.raises(ValueError, match="warm_start_from must be a path or WarmStartSettings"):
        as_settings(3)


@pytest.mark.parametrize("nothing", ["", None])
def test_a_warm_start_from_nothing_is_refused(nothing):
    with pytest.raises(ValueError, match="ckpt_to_initialize_from must be the path"):
        WarmStartSettings(nothing)
    assert as_settings(None) is None
    with pytest.raises(ValueError, match="ckpt_to_initialize_from=''"):
        as_settings("")


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
